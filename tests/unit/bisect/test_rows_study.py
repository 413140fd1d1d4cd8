from __future__ import annotations

import pytest
from measured import own
from observers import RecordingObserver
from shipped import MATRIX
from worlds import World

from dsbisect.rows_study import RowsRequest
from dsbisect.studies import Rows
from dsbisect.study_lab import Scene, ThisMachine
from dsharness.containers.engine import Engine
from dsharness.errors import MatrixError
from dsharness.matrix import find_series, find_settings
from dsharness.model import DirectoryContent, LdcltWorkload, Machine, Procedure, Setup
from dsresults.store import Store

ENGINE = Engine(
    podman_version="5", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
LOADS = (
    LdcltWorkload(id="few", title="few", users=20),
    LdcltWorkload(id="many", title="many", users=70),
)
COSTS = {"debian-11": 1, "debian-12": 1, "debian-13": 20, "debian-sid": 20}


def request(**changes):
    facts = {
        "matrix": MATRIX,
        "series": find_series(MATRIX, "debian"),
        "workloads": LOADS,
        "settings": find_settings(MATRIX, "default"),
    }
    return RowsRequest(**{**facts, **changes})


class Laboratory:
    """Benches in a world; like the real one, it gets its plan and is asked to prepare."""

    world = World(COSTS)
    refuses = frozenset()
    stop_after = 1000
    taken = 0
    all_conditions = ()

    def __init__(self, engine, conditions, supply, progress):
        type(self).all_conditions += (conditions,)
        self.images, self.identities, self.unmeasurable, self.failures = {}, {}, {}, {}
        self.setup = Setup(machine=Machine(id="one"), procedure=Procedure(version=1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def paired(self):
        return False

    def store_images(self, store):
        pass

    def prepare(self, rows, told):
        self.unmeasurable = {row: "no such version" for row in rows if row in self.refuses}
        for row in rows:
            if row in self.refuses:
                told.failed(row, "no such version")
            else:
                told.prepared(row)

    def prepare_more(self, candidates, starts="kept"):
        pass

    def ready(self, candidate):
        pass

    def take(self, turn):
        for row in turn.candidates:
            if type(self).taken >= self.stop_after:
                raise KeyboardInterrupt
            type(self).taken += 1
            yield own(self.world.sample(row, turn.number), turn)


@pytest.fixture
def laboratory(monkeypatch):
    class Fresh(Laboratory):
        pass

    monkeypatch.setattr("dslab.laboratory.Laboratory", Fresh)
    return Fresh


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "s.db") as opened:
        yield opened


def study(store, **changes):
    observer, loads = RecordingObserver(), {load.id: load for load in LOADS}
    scene = Scene(matrix=MATRIX, workloads=loads)
    lab = ThisMachine(scene=scene, engine=ENGINE, store=store, observer=observer)
    return Rows(**{"series": "debian", "workload": tuple(loads), **changes}).play(lab), observer


def test_one_answer_for_each_workload(laboratory, store):
    findings, observer = study(store)
    answers = [(c.workload_id, c.boundary.before, c.boundary.after) for c in findings.campaigns]
    assert answers == [("few", "debian-12", "debian-13"), ("many", "debian-12", "debian-13")]
    assert len(findings.samples) == laboratory.taken == len(store.samples())
    assert observer.records[0] == ("begin", tuple(COSTS), 2)
    assert observer.names.count("prepared") == 4


@pytest.mark.whole
def test_every_row_gets_as_many_users_as_the_largest_workload(laboratory, store):
    study(store)
    assert [conditions.seed.content for conditions in laboratory.all_conditions] == [
        DirectoryContent(number=70, passwords=1000)
    ]


def test_a_branching_series_gives_one_answer_for_each_line(laboratory, store):
    laboratory.world = World(dict.fromkeys((row.id for row in MATRIX.rows), 1))
    findings, _ = study(store, series="fedora", workload=("few",))
    lines = [campaign.boundary.line for campaign in findings.campaigns]
    assert len(lines) == 2
    assert len(set(lines)) == 2


def test_what_cannot_be_prepared_is_told_and_stays_suspect(laboratory, store):
    laboratory.refuses = frozenset({"debian-12"})
    findings, observer = study(store, workload=("few",))
    assert ("failed", "debian-12", "no such version") in observer.records
    (campaign,) = findings.campaigns
    assert campaign.boundary.suspects == ("debian-12", "debian-13")


def test_nothing_can_be_prepared(laboratory, store):
    laboratory.refuses = frozenset(COSTS)
    findings, _ = study(store)
    assert {campaign.boundary.direction for campaign in findings.campaigns} == {"unknown"}
    assert "debian-11: no such version" in findings.campaigns[0].boundary.summary


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("into_the_second", [0, 3])
def test_interrupted_in_the_second_workload_the_first_answer_stands(
    laboratory, store, into_the_second
):
    study(store)
    whole = laboratory.taken
    first = len([s for s in store.samples() if s.campaign_id == store.campaigns()[0].id])
    with Store.open(f"{store}.again.db") as again:
        laboratory.taken, laboratory.stop_after = 0, first + into_the_second
        with pytest.raises(KeyboardInterrupt):
            study(again)
        laboratory.taken, laboratory.stop_after = 0, 1000
        findings, observer = study(again)
        assert laboratory.taken <= whole - first - into_the_second + 1
        assert len(again.campaigns()) == len(findings.campaigns) == 2
        assert observer.names.count("answered") == 2
        assert observer.names[: observer.names.index("answered")].count("resumed") == 1


@pytest.mark.whole
def test_a_whole_study_is_measured_anew(laboratory, store):
    study(store)
    findings, observer = study(store)
    assert "resumed" not in observer.names
    assert len(store.campaigns()) == 4
    assert {campaign.id for campaign in findings.campaigns} == {
        campaign.id for campaign in store.campaigns()[2:]
    }


@pytest.mark.parametrize(
    ("good", "bad", "line"),
    [
        (None, None, ("debian-11", "debian-12", "debian-13", "debian-sid")),
        ("debian-12", None, ("debian-12", "debian-13", "debian-sid")),
        (None, "debian-12", ("debian-11", "debian-12")),
        ("debian-12", "debian-13", ("debian-12", "debian-13")),
    ],
)
def test_a_line_is_cut_to_its_ends(good, bad, line):
    assert request(good=good, bad=bad).lines == (line,)


@pytest.mark.parametrize(
    ("series", "good", "bad", "said"),
    [
        ("debian", "debian-13", "debian-11", "debian-11 comes before debian-13"),
        ("debian", "debian-12", "debian-12", "both debian-12"),
        ("debian", "debain-12", None, "no row 'debain-12'. Perhaps you meant 'debian-12'."),
        ("debian", None, "fedora-34-2.0.15", "series debian has no row 'fedora-34-2.0.15'"),
        ("debian", None, "debian-11", "between its start and debian-11"),
        ("fedora", "fedora-35-2.0.17", "fedora-36-2.1.1", "nothing to search between"),
    ],
)
def test_ends_that_leave_nothing_to_search(series, good, bad, said):
    asked = request(series=find_series(MATRIX, series), good=good, bad=bad)
    with pytest.raises(MatrixError) as caught:
        _ = asked.lines
    assert said in caught.value.message
    assert f"`dsbisect matrix graph {series}`" in caught.value.hint


@pytest.mark.whole
def test_a_search_by_instructions_counts_them_where_the_host_does_not(
    laboratory, store, monkeypatch
):
    monkeypatch.setattr("dsharness.measure.ways.host_counts", lambda: False)
    study(store, metric="instructions")
    study(store)
    assert [conditions.way.counts for conditions in laboratory.all_conditions] == [True, False]
