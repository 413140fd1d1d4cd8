"""Two rows under every load: each load is told, and none is named where both cost the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import Past
from shipped import MATRIX
from small_pasts import begin
from validations import ENGINE
from world_machine import WorldMachine
from worlds import World

from dsbisect.compare_study import labs_of, next_command, suite_of
from dsbisect.compared_sources import TwoSources
from dsbisect.comparison_question import Compare
from dsbisect.study_answers import answered
from dsbisect.study_lab import Scene
from dsharness.errors import InstanceError, UsageError
from dsharness.measure.metrics import METRICS
from dsresults.compare.compared_loads import ComparedLoad, ComparedLoads, Word
from dsresults.store import Store

ROWS = ("debian-12", "debian-13")
LOADS = ("bind-one", "bind-random", "session", "connect")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def compare(*loads: str, **more: object) -> Compare:
    return Compare.model_validate({"first": ROWS[0], "second": ROWS[1], "workload": loads, **more})


def played(study: Compare, store: Store, times: float, **more: object) -> ComparedLoads:
    world = World({ROWS[0]: 1, ROWS[1]: times}, **{"noise": 0.02, **more})
    answer = study.play(WorldMachine(store=store, world=world))
    assert isinstance(answer, ComparedLoads)
    return answer


def test_the_suite_has_each_load_that_both_can_answer() -> None:
    scene = Scene(matrix=MATRIX)
    judged = suite_of(compare(), scene)
    names = {row.load.id for row in judged}
    assert {"bind-random", "connect", "idle", "import", "write-members"} <= names
    assert not {name for name in names if name.startswith(("dns", "kerberos"))}
    assert [row.metrics for row in judged if row.load.id == "search-equality"] == [
        ("cost", "growth"), ("syscalls",),
    ]  # fmt: skip
    groups = list(labs_of(judged))
    assert sum(map(len, groups)) == len(judged)
    assert all(len({row.load.tool for row in group}) == 1 for group in groups)
    # What a load expects to find is told by what its directory holds.
    assert all(len({row.load.content.model_dump_json() for row in group}) == 1 for group in groups)
    assert max(map(len, groups)) > 2


def test_without_a_suite_the_usual_loads_are_measured() -> None:
    defaults = MATRIX.defaults.model_copy(update={"suite": {}})
    scene = Scene(matrix=MATRIX.model_copy(update={"defaults": defaults}))
    judged = suite_of(compare(), scene)
    assert [(row.load.id, row.metrics) for row in judged] == [
        (name, ("cost",)) for name in defaults.workloads
    ]


def test_every_metric_of_the_shipped_suite_is_one() -> None:
    for metrics in MATRIX.defaults.suite.values():
        assert set(metrics) <= METRICS.keys()


@pytest.mark.parametrize(("times", "word"), [(1.5, Word.SLOWER), (0.5, Word.FASTER)])
def test_a_difference_is_named_with_its_size(times: float, word: Word, store: Store) -> None:
    answer = played(compare(*LOADS), store, times)
    assert [load.word for load in answer.loads] == [word] * len(LOADS)
    assert answer.refused == (word is Word.SLOWER)
    for load in answer.loads:
        low, high = load.interval or (0.0, 0.0)
        assert low < times < high
        assert load.runs < 10


@pytest.mark.parametrize("seed", range(6))
def test_what_costs_the_same_is_the_same_within_the_margin(seed: int, store: Store) -> None:
    answer = played(compare(*LOADS), store, 1.0, seed=seed)
    assert [load.word for load in answer.loads] == [Word.SAME] * len(LOADS)
    assert not answer.refused
    assert not answer.inconclusive
    for load in answer.loads:
        assert load.boundary
        assert (load.boundary.smallest_visible_pct or 0) <= 5.5


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (
            {"first": "debian-11", "second": "debian-13"},
            (
                "dsbisect bisect rows --series debian --good debian-11 --bad debian-13 "
                "--workload connect"
            ),
        ),
        (
            {"first": "debian-12", "second": "debian-13"},
            "dsbisect explain debian-12 debian-13 --workload connect",
        ),
        (
            {"first": "3.1.1", "second": "3.1.2", "repository": "/src/a b"},
            "dsbisect bisect commits 3.1.1..3.1.2 --repo '/src/a b' --workload connect",
        ),
        (
            {"first": "main", "second": "pull/7", "repository": "."},
            "dsbisect bisect commits aaaa..bbbb --repo . --workload connect",
        ),
        ({"first": "HEAD", "patch": "a.patch", "repository": "."}, ""),
    ],
)
def test_what_to_ask_next_is_a_command(words: dict[str, str], command: str) -> None:
    worst = ComparedLoad(workload_id="connect", title="", metric="cost")
    names = ("aaaa", "bbbb")
    assert next_command(Compare.model_validate(words), MATRIX, worst, names) == command


def test_a_difference_below_the_margin_is_no_reason_to_say_no(store: Store) -> None:
    answer = played(compare("bind-one", margin=10), store, 1.04, noise=0.004)
    assert not answer.refused


def test_a_row_that_cannot_be_made_leaves_its_loads_unknown(store: Store) -> None:
    study = compare("bind-one", "connect")
    world = World(dict.fromkeys(ROWS, 1.0))
    scene = Scene(matrix=MATRIX)
    part = f"{ROWS[0]}/{ROWS[1]}/default/connect"
    machine = WorldMachine(
        store=store,
        world=world,
        scene=scene,
        unmade={part: {ROWS[1]: InstanceError("it did not become ready")}},
    )
    answer = study.play(machine)
    assert isinstance(answer, ComparedLoads)
    first, second = answer.loads
    assert (first.word, second.word) == (Word.SAME, Word.UNKNOWN)
    assert "did not become ready" in second.why
    unmeasured = answer.model_copy(update={"measured_from": "", "measured_until": ""})
    assert unmeasured.page().about[1] == "Nothing was measured"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"second": ROWS[0]}, "is both of them"),
        ({"metric": "rate"}, "needs a --workload"),
        ({"second": None}, "nothing to compare with"),
        ({"patch": "a.patch"}, "--patch with two"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: dict[str, str | None], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compare(**words)


def past_of(folder: Path) -> Past:
    """Two commits that differ in the server, and a pull request on the first one."""
    past = begin(folder)
    past.git("branch", "request")
    past.commit("slower", {"ldap/servers/slapd/main.c": "int main(void) { return 1; }\n"})
    past.git("checkout", "--quiet", "request")
    past.commit("asked", {"ldap/servers/slapd/main.c": "int main(void) { return 2; }\n"})
    past.git("update-ref", "refs/pull/7/head", "HEAD")
    past.git("checkout", "--quiet", "main")
    return past


def test_a_pull_request_is_compared_with_where_it_parted(tmp_path: Path) -> None:
    past = past_of(tmp_path / "source")
    study = Compare(first="main", second="pull/7", repository=str(past.folder))
    sources = TwoSources.of(study, Scene(matrix=MATRIX))
    tip, base = past.git("rev-parse", "refs/pull/7/head"), past.git("rev-parse", "main~1")
    assert sources.names == (base[:12], tip[:12])
    assert sources.titles == (f"main ({base[:12]})", f"pull/7 ({tip[:12]})")
    assert [row.load.id for row in suite_of(study, Scene(matrix=MATRIX))][:2] == [
        "bind-random", "bind-one",
    ]  # fmt: skip
    assert study.matrix_rows(Scene(matrix=MATRIX)) == ()


def test_a_patch_is_applied_to_the_second_one_alone(tmp_path: Path) -> None:
    past = past_of(tmp_path / "source")
    patch = tmp_path / "fix.patch"
    patch.write_text(past.git("diff", "main~1", "main") + "\n", encoding="utf-8")
    study = Compare(first="main~1", patch=patch, repository=str(past.folder))
    sources = TwoSources.of(study, Scene(matrix=MATRIX))
    supply = sources.supply(ENGINE)
    applied = [supply.patches(specimen.tree) for specimen in supply.specimens.values()]
    assert [len(patches) for patches in applied] == [0, 1]
    assert len(set(supply.identities.values())) == 2
    assert sources.titles[1] == "main~1 with fix.patch"


def test_what_makes_the_same_server_is_refused(tmp_path: Path) -> None:
    past = begin(tmp_path / "source")
    past.commit("words", {"README.md": "more words\n"})
    study = Compare(first="HEAD~1", second="HEAD", repository=str(past.folder))
    with pytest.raises(UsageError, match="make the same server"):
        TwoSources.of(study, Scene(matrix=MATRIX))


def test_what_is_no_row_is_a_revision_of_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(matrix=MATRIX)
    past = begin(tmp_path / "source")
    monkeypatch.chdir(past.folder)
    assert Compare(first="HEAD~1", second="HEAD").placed(scene).repository == "."
    assert not Compare(first="HEAD~1", second="HEAD").placed(scene).uses_folder
    rows = Compare(first=ROWS[0], second=ROWS[1]).placed(scene)
    assert (rows.repository, rows.uses_folder) == (None, True)
    (past.folder / "below").mkdir()
    monkeypatch.chdir(past.folder / "below")
    assert Compare(first="HEAD~1", second="HEAD").placed(scene).repository == "."
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"3\.1\.1 and 3\.1\.2: no rows .* no repository"):
        Compare(first="3.1.1", second="3.1.2").placed(scene)
    with pytest.raises(UsageError, match="no rows"):  # a row's patch is what `validate` judges
        Compare(first=ROWS[0], patch=Path("a.patch")).placed(scene)


@pytest.mark.parametrize("failing", [ROWS, ROWS[1:]], ids=["both", "one"])
def test_two_rows_that_fail_in_the_first_lab_end_it(failing: tuple[str, ...], store: Store) -> None:
    """They would in each; one alone may only lack what this load needs."""
    study = compare("bind-one", "connect")
    part = f"{ROWS[0]}/{ROWS[1]}/default/bind-one"
    errors = dict.fromkeys(failing, InstanceError("it did not become ready"))
    machine = WorldMachine(
        store=store, world=World(dict.fromkeys(ROWS, 1.0)), scene=Scene(matrix=MATRIX),
        unmade={part: dict(errors)},
    )  # fmt: skip
    if failing == ROWS:
        with pytest.raises(InstanceError, match="did not become ready"):
            study.play(machine)
        assert machine.taken == 0
    else:
        assert [load.word for load in study.play(machine).loads] == [Word.UNKNOWN, Word.SAME]


def test_runs_count_whatever_margin_was_asked_before(store: Store) -> None:
    world = World({ROWS[0]: 1, ROWS[1]: 1.04}, noise=0.004)
    machines = [WorldMachine(store=store, world=world) for _ in range(3)]
    studies = [compare("bind-one", margin=margin) for margin in (10, 2, 10)]
    kept = [answered(*pair) for pair in zip(studies, machines, strict=True)]
    taken = [machine.taken for machine in machines]
    assert taken[1] < taken[0]
    assert taken[2] == 0  # told again
    assert [answer.answer.refused for answer in kept] == [False, True, False]
    for answer in kept:
        assert answer.again(store, MATRIX) == answer.answer
