"""Several machines over a real PostgreSQL, with the real queue's jobs and a simulated world.

Jobs are done one by one by the test, so that each way to die or to be asked twice is one line.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fleet_of_worlds import (
    CLASS,
    FACTS,
    LINE,
    LOG,
    QUESTION,
    STEP,
    WORKLOAD,
    Fleet,
    WorldLab,
    WorldStudy,
    begun,
    finished,
    nothing,
    now,
    prove_turns,
    prove_whole,
    turns_of,
)
from measured import WorldBenches
from observers import RecordingObserver
from postgresql_cluster import Cluster, running_cluster
from pydantic import JsonValue
from shipped import MATRIX
from sqlalchemy import text
from worlds import World

from benchmarks.many.asked_statements import asked
from dsbisect.cli import root
from dsbisect.cli.root import run as run_command
from dsbisect.comparison_question import Compare
from dsbisect.difference_question import Explain
from dsbisect.explain_study import SERVERS, ServersSeen, named_arms
from dsbisect.shared_studies import SharedQuestion, document_of
from dsbisect.studies import Levels, Sizes
from dsbisect.study import Study
from dsbisect.study_answers import documents_of
from dsbisect.study_lab import Scene, lab_key
from dsbisect.watch_stages import SearchStages
from dsharness.errors import EngineError, ExitCode, StoppedError, UpgradedError
from dsharness.model import (
    Abilities,
    Boundary,
    Campaign,
    CampaignKind,
    Family,
    Finding,
    Machine,
    Prepared,
    RunState,
    SharedRun,
    TurnState,
    Workload,
)
from dslab.campaign_loop import CampaignOrder, CampaignState, LabAnswers, asked_in_turn
from dsmany.attached import RunTold, begin_run, cancel_run
from dsmany.fleet import class_of
from dsmany.shared_answers import campaigns_of
from dsmany.turn_record import SharedState
from dsresults.profile_pair import stored_profiles
from dsresults.store import Store
from dsresults.store.database import VERSION_TABLE
from dsresults.store.fleet_records import drain_machine, put_machine
from dsresults.watch.alarms import AlarmState
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Costs
from dssearch.question import Question, Search

DUETS = WorldStudy(proved=True, search=Bayes(costs=Costs(paired=True)))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
def store(cluster: Cluster) -> Iterator[Store]:
    with Store.open(cluster.url(cluster.new_database())) as opened:
        yield opened


@contextmanager
def fleet_of(
    store: Store, *names: str, proved: bool = False, study: WorldStudy | None = None
) -> Iterator[Fleet]:
    fleet = Fleet(store, names, proved=proved, study=study)
    try:
        yield fleet
    finally:
        fleet.end()


@dataclass(frozen=True)
class WorldOpener:
    """Opens the world's lab where a study would open one of containers."""

    opener: Any
    study: WorldStudy
    engine: Any = None
    observer: Any = None

    def open(self, name: str, place: object) -> Any:
        del place
        return self.opener.open(name, self.study.world_lab)


@dataclass
class StudyOfWorld(WorldStudy):
    """A study with `--on`, as machines read it, over a world of rows."""

    asked: SharedQuestion | None = None
    told: dict[str, JsonValue] = field(default_factory=dict)

    def prepare(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None, opener: Any
    ) -> dict[str, JsonValue]:
        assert self.asked is not None
        worlds = WorldOpener(opener, self)
        if self.told:  # by servers, which no world has
            worlds.open(lab_key(self.asked.loads[0]), None)
            return self.told
        return self.asked.prepare(answers, store, prepared=prepared, opener=worlds)

    def answer(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None
    ) -> Finding | None:
        assert self.asked is not None
        assert prepared is not None
        return self.asked.answer(answers, store, prepared=prepared)

    def introduce(self, candidates: Sequence[str], answers: LabAnswers, store: Store) -> None:
        """All were prepared at the start."""


def test_two_machines_share_levels_of_load(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    rows = ("debian-12", "debian-13")
    study = Levels(rows=rows, workload="search-as-user", shares_pct=(50, 100), runs=2)
    document = document_of(study, Scene(matrix=MATRIX))
    run = begin_run(store, document, machines=2, class_name="")
    shared = SharedQuestion.of(run)
    world = World(dict(zip(rows, (1.0, 4.0), strict=True)))
    with fleet_of(
        store, "a", "b", study=StudyOfWorld(asked=shared, begins_with=rows, world=world)
    ) as fleet:
        assert finished(fleet, run).state is RunState.DONE
    campaigns = campaigns_of(store, now(store, run))
    assert len(campaigns) == 3  # the closed loop, and both levels
    for campaign in campaigns:
        prove_turns(store, campaign.id)
    assert {turn.machine for each in campaigns for turn in store.turns(each.id)} == {"a", "b"}
    kept = shared.stored_answer(campaigns, store)
    assert [row.row for row in kept.answer.rows] == list(rows)
    assert all(level.runs >= 2 for row in kept.answer.rows for level in row.levels)
    assert kept.again(store, MATRIX) == kept.answer


def test_two_machines_share_what_explains_a_difference(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    study = Explain(fast="debian-12", slow="debian-13", workload=("bind-one",), runs=4)
    scene = Scene(matrix=MATRIX)
    run = begin_run(store, document_of(study, scene), machines=2, class_name="")
    arms = named_arms(study, scene)
    refused = dict.fromkeys(list(arms)[1:2], "it does not know them")
    told = documents_of({SERVERS: ServersSeen(refused=refused, configuration=())})
    made = {name: cost for cost, name in enumerate(arms, 1) if name not in refused}
    shared = SharedQuestion.of(run)
    of_world = StudyOfWorld(asked=shared, told=told, begins_with=tuple(arms), world=World(made))
    with fleet_of(store, "a", "b", study=of_world) as fleet:
        assert finished(fleet, run).state is RunState.DONE
    (campaign,) = campaigns_of(store, now(store, run))
    prove_turns(store, campaign.id)
    kept = shared.stored_answer([campaign], store)
    assert kept.answer.impossible == refused
    assert [arm.runs for load in kept.answer.workloads for arm in load.arms] == [4, 4, 4]
    assert kept.again(store, MATRIX) == kept.answer


SIZES = Sizes(rows=("debian-12", "debian-13"), workload="search-known", sizes=(100, 1000), runs=3)
COMPARED = Compare(
    first="debian-12", second="debian-13", workload=("bind-one", "search-known", "connect")
)


@pytest.mark.parametrize(
    ("study", "labs"), [(SIZES, 2), (COMPARED, 3)], ids=["sizes", "a suite of loads"]
)
def test_two_machines_share_a_study_of_several_labs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: Study, labs: int
) -> None:
    """Each lab is prepared by one machine when it is asked for, and opened by both."""
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    scene = Scene(matrix=MATRIX)
    rows = study.names(scene)
    run = begin_run(store, document_of(study, scene), machines=2, class_name="")
    shared = SharedQuestion.of(run)
    world = World(dict(zip(rows, (1.0, 4.0), strict=True)))
    with fleet_of(
        store, "a", "b", study=StudyOfWorld(asked=shared, begins_with=rows, world=world)
    ) as fleet:
        ended = finished(fleet, run)
        assert (ended.state, ended.why) == (RunState.DONE, "")
    campaigns = campaigns_of(store, now(store, run))
    for campaign in campaigns:
        prove_turns(store, campaign.id)
    assert ended.prepared is not None
    assert len(ended.prepared.labs) == labs
    assert {campaign.lab for campaign in campaigns} == set(ended.prepared.labs)
    machines = {turn.machine for each in campaigns for turn in store.turns(each.id)}
    assert machines == ({"a", "b"} if study is SIZES else {"a"})  # which sees the others at once
    kept = shared.stored_answer(campaigns, store)
    assert kept.again(store, MATRIX) == kept.answer


def test_two_machines_name_what_one_names(store: Store, tmp_path: Path) -> None:
    with Store.open(tmp_path / "one.db") as alone:
        order = CampaignOrder(
            question=QUESTION, workload=WORKLOAD, search=Bayes(), lab=WorldBenches(STEP),
            store=alone,
        )  # fmt: skip
        one = order.run(RecordingObserver()).boundary
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        assert begun(store).id == run.id  # the same command finds it again
        assert finished(fleet, run).state is RunState.DONE
        observer = RecordingObserver()
        told = RunTold(store, WorldStudy(machine="user"), observer)
        told.until_ended(run.id)
    assert one is not None
    prove_whole(store, run, one.after or "")
    assert {turn.machine for turn in turns_of(store, run)} == {"a", "b"}
    assert observer.names.count("answered") == 1
    assert observer.names.count("sampled") == len(store.samples())


def test_a_watch_is_told_that_the_tip_seems_slower_while_machines_search(store: Store) -> None:
    said: list[AlarmState] = []
    stages = SearchStages(
        observer=RecordingObserver(),
        reference=LINE[0],
        tip=LINE[-1],
        began=lambda state, _: said.append(state),
    )
    with fleet_of(store, "a") as fleet:
        run = begun(store)
        told = RunTold(store, WorldStudy(machine="user"), stages)
        while told.look(run.id) is None:
            fleet.do(fleet.jobs()[0])
    assert said == [AlarmState.NEW, AlarmState.BISECTING]


def test_whoever_is_told_of_a_run_is_told_of_an_upgrade(store: Store, cluster: Cluster) -> None:
    """Nobody waits for a database that this program cannot read."""
    run = begun(store)
    database, known = str(store.database.location.url.database), store.database.schema
    change = f"UPDATE {VERSION_TABLE} SET version_num = "
    cluster.execute(f"{change} '9999'", database=database)
    told = RunTold(store, WorldStudy(machine="user"), RecordingObserver())
    with pytest.raises(UpgradedError, match=f"schema 9999; this process writes {known}"):
        told.until_ended(run.id)


def test_no_step_reads_a_table_from_end_to_end(store: Store) -> None:
    """As a store of years has millions of samples."""
    whole: dict[str, str] = {}
    with fleet_of(store, "a", "b", proved=True) as fleet:
        run = begun(store)
        with asked(store) as work:
            finished(fleet, run)
            next(iter(fleet.workers.values())).reap()
        whole = work.whole_tables(store)
    assert len(work.statements) > 100
    assert whole == {}


def test_a_drained_machine_ends_its_turn_and_gets_none_until_that_is_undone(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        while not any(turn.machine == "b" for turn in turns_of(store, run)):
            fleet.do(fleet.jobs()[0])
        drains(store, "b", drained=True)
        had = {turn.id for turn in turns_of(store, run) if turn.machine == "b"}
        finished(fleet, run)
        of_b = [turn for turn in turns_of(store, run) if turn.machine == "b"]
        assert {turn.id for turn in of_b} == had
        assert {turn.state for turn in of_b} == {TurnState.DONE}
        drains(store, "b", drained=False)
        again = begin_run(store, {"world": "again"}, machines=2, class_name="")
        finished(fleet, again)
    assert {turn.machine for turn in turns_of(store, again)} == {"a", "b"}
    prove_whole(store, run)


def drains(store: Store, name: str, *, drained: bool) -> None:
    with store.database.writing() as connection:
        drain_machine(connection, name, drained=drained)


def test_only_machines_of_the_class_that_was_asked_for_take_turns(store: Store) -> None:
    """Though it is not the largest; without one there, the run waits."""
    asked = class_of(Machine(id="c", facts=OTHER))
    with fleet_of(store, "a", "b", "c") as fleet:
        worker = fleet.workers["c"]
        worker._machine = worker._machine.model_copy(update={"class_name": asked})
        with store.database.writing() as connection:
            put_machine(connection, worker._machine)
        fleet.labs["c"] = WorldLab(STEP, machine="c", facts=OTHER)
        waits = begin_run(store, {"world": "none"}, machines=2, class_name="ARM")
        fleet.do(fleet.jobs()[0])
        assert fleet.jobs() == []
        assert now(store, waits).preparing == ""
        run = begin_run(store, {"world": "step"}, machines=2, class_name=asked)
        finished(fleet, run)
    assert {turn.machine for turn in turns_of(store, run)} == {"c"}
    prove_whole(store, run)


def test_a_run_begins_with_as_many_machines_as_asked_and_goes_on_with_those_left(
    store: Store,
) -> None:
    observer = RecordingObserver()
    told = RunTold(store, WorldStudy(machine="user"), observer)
    with fleet_of(store, "a", "b") as fleet:
        fleet.dies("b")
        run = begin_run(store, {"world": "step"}, machines=2, at_least=2, class_name="")
        for _ in range(3):
            fleet.workers["a"].reap()
            assert told.look(run.id) is None
        assert now(store, run).preparing == ""
        waiting = f"waiting for 2 machines of one class: 1 there, of class {CLASS}; "
        assert prepared_of(observer) == [f"{waiting}`dsbisect machines` shows all"]
        fleet.comes("b")
        while not all(any(t.machine == n for t in turns_of(store, run)) for n in "ab"):
            if not (jobs := fleet.jobs()):
                fleet.workers["a"].reap()
            fleet.do((jobs or fleet.jobs())[0])
        told.look(run.id)
        fleet.dies("b")
        told.look(run.id)
        assert finished(fleet, run).state is RunState.DONE
        told.until_ended(run.id)
    assert (
        prepared_of(observer)[-1]
        == "goes on with a alone, though at least 2 machines were asked for"
    )
    prove_whole(store, run)


def test_the_same_command_with_fewer_machines_ends_the_wait(store: Store) -> None:
    with fleet_of(store, "a") as fleet:
        run = begin_run(store, {"world": "step"}, machines=4, at_least=2, class_name="")
        fleet.do(fleet.jobs()[0])
        assert fleet.jobs() == []
        assert begun(store, machines=1).id == run.id
        assert finished(fleet, run).state is RunState.DONE
    prove_whole(store, run)


def prepared_of(observer: RecordingObserver) -> list[str]:
    """What was told of a run as a whole."""
    return [str(what) for name, *_, what in observer.records if name == "preparing"]


def test_what_a_machine_can_do_is_stored_and_shown_and_unknown_of_an_older_worker(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    can = Abilities(families=(Family.APT,), counters=False, pins_cpus=True)
    with fleet_of(store, "a", "b") as fleet:
        machine = fleet.workers["a"]._machine.model_copy(update={"can": can})
        with store.database.writing() as connection:
            put_machine(connection, machine)
            older = "UPDATE documents SET body = (body::jsonb - 'can')::json WHERE of = 'b'"
            connection.execute(text(older))
        monkeypatch.setenv(
            "DSBISECT_ON", store.database.location.url.render_as_string(hide_password=False)
        )
        monkeypatch.setattr(sys, "argv", ["dsbisect", "machines"])
        with pytest.raises(SystemExit) as left:
            run_command(root.app)
    assert left.value.code == ExitCode.OK
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(f"{CLASS}; can: rows of apt; no hardware counters; CPU pinning")
    assert second.endswith(f"{CLASS}; can: unknown")


def test_runs_are_spread_over_all_machines(store: Store) -> None:
    names = [f"m{number}" for number in range(6)]
    with fleet_of(store, *names) as fleet:
        runs = [begin_run(store, {"world": n}, machines=2, class_name="") for n in range(9)]
        while any(now(store, run).prepared is None for run in runs) or any(
            job["task_name"] == "dsbisect.advance" for job in fleet.jobs()
        ):
            jobs = fleet.jobs()
            fleet.do(next((j for j in jobs if j["task_name"] != "dsbisect.take"), jobs[0]))
        load = Counter(turn.machine for turn in store.planned_turns())
        assert set(load) == set(names)
        assert max(load.values()) <= 3 * min(load.values())


def test_a_turn_that_ended_tells_what_its_time_was_spent_on(store: Store) -> None:
    with fleet_of(store, "a") as fleet:
        run = begun(store)
        fleet.labs["a"] = WorldLab(STEP, machine="a")
        fleet.labs["a"].before_sample = lambda: time.sleep(0.01)
        finished(fleet, run)
    turns = turns_of(store, run)
    told = [turn.spent.runs_s for turn in turns if turn.spent is not None]
    assert len(told) == len(turns)
    assert all(s >= 0.01 * len(turn.candidates) for s, turn in zip(told, turns, strict=True))
    assert sum(told) == pytest.approx(fleet.labs["a"].spent.each_s["runs"], abs=0.01)


def test_a_job_that_comes_twice_changes_nothing(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        for _ in range(60):
            jobs = fleet.jobs()
            if not jobs:
                break
            fleet.do(jobs[0], keep=True)
            fleet.do(jobs[0])
        finished(fleet, run)
    prove_whole(store, run)


def test_what_a_dead_machine_had_goes_to_another(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        while not all(any(t.machine == n for t in turns_of(store, run)) for n in "ab"):
            fleet.do(fleet.jobs()[0])
        (lost,) = [
            t for t in turns_of(store, run) if t.machine == "a" and t.state is TurnState.PLANNED
        ]
        fleet.dies("a")
        finished(fleet, run)
        ended = store.turn(lost.id)
        assert ended is not None
        assert ended.state is TurnState.GIVEN_UP
    prove_whole(store, run)


def test_a_machine_that_breaks_is_left_out_with_its_reason(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        fleet.labs["b"] = WorldLab(STEP, machine="b", breaks=True)
        ended = finished(fleet, run)
        assert ended.state is RunState.DONE
        assert "podman is gone" in ended.left_out["b"]
    prove_whole(store, run)


def test_a_machine_with_other_candidates_is_left_out(store: Store) -> None:
    """What it would measure is something else, so its turn is another's."""
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        for name in "ab":
            image = {"a": f"the image of {name}"}
            fleet.labs[name] = WorldLab(STEP, machine=name, identities=image)
        ended = finished(fleet, run)
        assert "candidates" in ended.left_out["b"]
        assert {s.machine.id for s in store.samples()} == {"a"}
    prove_whole(store, run)


def test_a_worker_that_is_stopped_in_a_turn_is_not_left_out(store: Store) -> None:
    """As by Ctrl-C: what it runs ends, and another one, or itself later, takes the turn."""

    def stopped() -> None:
        raise StoppedError("podman was ended: the lab is stopping")

    with fleet_of(store, "a") as fleet:
        run = begun(store)
        fleet.labs["a"] = WorldLab(STEP, machine="a", before_sample=stopped)
        while not turns_of(store, run):
            fleet.do(fleet.jobs()[0])
        while jobs := fleet.jobs():
            fleet.do(jobs[0])
        assert now(store, run).state is RunState.RUNNING
        fleet.dies("a")
        fleet.labs["a"].before_sample = nothing
        fleet.comes("a")
        ended = finished(fleet, run)
    assert (ended.state, ended.left_out) == (RunState.DONE, {})
    prove_whole(store, run)


@pytest.mark.parametrize("lost", ["prepare", "take"])
def test_what_a_job_tells_that_was_lost_is_done(store: Store, lost: str) -> None:
    """Its connection was cut while it was fetched: its machine lives, and knows nothing of it."""
    with fleet_of(store, "a") as fleet:
        run = begun(store)
        worker = fleet.workers["a"]
        worker._settle()  # as after its start
        while not any(job["task_name"] == f"dsbisect.{lost}" for job in fleet.jobs()):
            fleet.do(fleet.jobs()[0])
        worker._look()
        worker._look()
        assert not worker._unsettled  # its job waits
        with store.database.writing() as connection:
            connection.execute(text("DELETE FROM procrastinate_jobs"))
        worker._look()
        worker.reap()
        assert fleet.jobs() == []  # nobody else would do it
        worker._look()
        assert worker._unsettled
        worker._settle()
        assert finished(fleet, run).state is RunState.DONE
    prove_whole(store, run)


OTHER = {**FACTS, "cpu_model": "Xeon"}


def strays(store: Store, run: SharedRun) -> dict[str, str]:
    """Let b's samples say another class than it came with, from its first turn on."""
    with fleet_of(store, "a", "b") as fleet:
        for name, facts in (("a", FACTS), ("b", OTHER)):
            fleet.labs[name] = WorldLab(STEP, machine=name, facts=facts)
        ended = finished(fleet, run)
    assert ended.state is RunState.DONE
    assert {each.machine.id for each in store.samples()} == {"a"}
    prove_whole(store, run)
    return ended.left_out


def test_a_machine_that_became_another_class_stores_nothing(store: Store) -> None:
    why = strays(store, begun(store))["b"]
    assert "no longer what it was" in why
    assert "Xeon" in why


def test_a_machine_that_lies_about_its_class_is_found_out_by_the_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program does not look at its own samples."""
    monkeypatch.setattr(SharedState, "add", CampaignState.add)
    run = begun(store)
    why = strays(store, run)["b"]
    assert why == f"b: a sample is of another class, {class_of(Machine(id='b', facts=OTHER))}"
    given_up = {turn.machine for turn in turns_of(store, run) if turn.state is TurnState.GIVEN_UP}
    assert given_up == {"b"}


def test_where_all_machines_lie_a_run_is_inconclusive(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedState, "add", CampaignState.add)
    with fleet_of(store, "a") as fleet:
        run = begun(store)
        fleet.labs["a"] = WorldLab(STEP, machine="a", facts=OTHER)
        ended = finished(fleet, run)
    assert ended.state is RunState.FAILED
    assert "a sample is of another class" in ended.why
    assert store.samples() == []


def search_by(store: Store, noise: float, machines: str = "ab") -> tuple[SharedRun, int]:
    """A small step; b's runs vary so much. The run, and the samples that count."""
    levels = {name: 1.0 if name < "d" else 1.1 for name in LINE}
    with fleet_of(store, *machines, study=WorldStudy(world=World(levels, noise=0.03))) as fleet:
        run = begun(store)
        fleet.labs["b"] = WorldLab(World(levels, noise=noise, seed=1), machine="b")
        ended = finished(fleet, run)
    assert ended.state is RunState.DONE
    whole = [turn for turn in turns_of(store, run) if turn.state is TurnState.DONE]
    return ended, sum(len(turn.candidates) for turn in whole)


def test_a_machine_whose_runs_vary_too_much_is_left_out(store: Store) -> None:
    """What it measured counts no more, and the other one alone names the step."""
    ended, counted = search_by(store, noise=0.4)
    assert "b: its runs of one candidate vary by" in ended.left_out["b"]
    assert "those of a by" in ended.left_out["b"]
    counting = [turn for turn in turns_of(store, ended) if turn.state is TurnState.DONE]
    assert {turn.machine for turn in counting} == {"a"}
    assert counted < 60
    prove_whole(store, ended)


def test_a_machine_that_varies_as_usual_or_is_alone_stays(store: Store) -> None:
    assert search_by(store, noise=0.03)[0].left_out == {}


def test_without_a_machine_a_run_is_inconclusive_with_the_reasons(store: Store) -> None:
    with fleet_of(store, "a") as fleet:
        run = begun(store)
        fleet.labs["a"] = WorldLab(STEP, machine="a", breaks=True)
        ended = finished(fleet, run)
    assert ended.state is RunState.FAILED
    assert "podman is gone" in ended.why


def test_a_cancelled_run_keeps_its_samples_and_asks_for_nothing(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        while not store.samples():
            fleet.do(fleet.jobs()[0])
        taken = len(store.samples())
        assert cancel_run(store, run)
        assert not cancel_run(store, run)
        assert TurnState.PLANNED not in {turn.state for turn in turns_of(store, run)}
        while jobs := fleet.jobs():
            fleet.do(jobs[0])
    assert len(store.samples()) == taken
    assert now(store, run).state is RunState.CANCELLED


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_jobs_deaths_and_repeats_gives_the_answer(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    with fleet_of(store, "a", "b", "c") as fleet:
        run = begun(store, machines=3)
        while now(store, run).state is RunState.RUNNING:
            jobs = fleet.jobs()
            if not jobs or chance.random() < 0.1:
                chance.choice(list(fleet.workers.values())).reap()
                continue
            fleet.do(chance.choice(jobs), keep=chance.random() < 0.2)
            if len(fleet.workers) > 1 and chance.random() < 0.03:
                fleet.dies(chance.choice(list(fleet.workers)))
    prove_whole(store, run)


def test_what_follows_from_an_answer_is_asked_then(store: Store) -> None:
    """As the proof of a culprit: its candidates are known to nobody before."""
    with fleet_of(store, "a", "b", proved=True) as fleet:
        run = begun(store)
        assert finished(fleet, run).state is RunState.DONE
    search, *proof = campaigns_of(store, run)
    assert search.kind == "rows"
    assert [(each.kind, each.line) for each in proof] == [
        ("measure", ("c", "d")), ("commits", ("a", "d")), ("commits", ("c", "h")),
    ]  # fmt: skip
    assert all(each.boundary is not None for each in proof)
    prove_whole(store, run)


def alone(tmp_path: Path) -> list[Boundary | None]:
    """What one machine says to the questions of a proved search, in order."""
    said: list[Boundary | None] = []
    with Store.open(tmp_path / "one.db") as own:

        def answers(
            question: Question, workload: Workload, search: Search, kind: CampaignKind
        ) -> Campaign:
            order = CampaignOrder(
                question=question, workload=workload, search=search, lab=WorldBenches(STEP),
                store=own, kind=kind,
            )  # fmt: skip
            campaign = order.run(RecordingObserver())
            said.append(campaign.boundary)
            return campaign

        machines = SimpleNamespace(within=lambda _: answers)
        replace(DUETS, together=asked_in_turn).answer(machines, own, prepared=None)
    return said


def said_of(found: Boundary | None) -> dict[str, Any] | None:
    """All of an answer but the ids of its samples."""
    if found is None:
        return None
    verdicts = [verdict.model_dump(exclude={"samples"}) for verdict in found.verdicts]
    return found.model_dump(exclude={"verdicts"}) | {"verdicts": verdicts}


@pytest.mark.parametrize("machines", [1, 2, 3])
def test_a_proof_is_the_same_however_many_machines_compare(
    store: Store, tmp_path: Path, machines: int
) -> None:
    """Each comparison has its own machine, whose runs are those that one machine alone has."""
    names = "abc"[:machines]
    most = 0
    with fleet_of(store, *names, study=DUETS) as fleet:
        run = begun(store, machines=machines)
        while now(store, run).state is RunState.RUNNING:
            fleet.do(fleet.jobs()[0])
            planned = [
                turn
                for each in campaigns_of(store, run)[1:]
                for turn in store.turns(each.id)
                if turn.state is TurnState.PLANNED
            ]
            assert len({turn.machine for turn in planned}) == len(planned)
            most = max(most, len({turn.campaign_id for turn in planned}))
    search, *proof = campaigns_of(store, run)
    first, *rest = alone(tmp_path)
    assert most == machines  # so many comparisons at the same time
    assert [said_of(each.boundary) for each in proof] == list(map(said_of, rest))
    assert (first and first.after) == (search.boundary and search.boundary.after)
    for each in proof:
        assert len({turn.machine for turn in store.turns(each.id)}) == 1
    prove_whole(store, run)


def test_a_comparison_goes_on_elsewhere_and_the_others_are_not_asked_again(store: Store) -> None:
    with fleet_of(store, "a", "b", proved=True) as fleet:
        run = begun(store)
        while len(campaigns_of(store, run)) < 4:
            fleet.do(fleet.jobs()[0])
        fleet.dies("b")
        finished(fleet, run)
        _, *proof = campaigns_of(store, run)
        states = Counter(turn.state for each in proof for turn in store.turns(each.id))
        assert states[TurnState.GIVEN_UP] == 1
        assert len(proof) == 3
    prove_whole(store, run)


def test_without_a_candidate_of_a_proof_nothing_is_asked_for_ever(store: Store) -> None:
    with fleet_of(store, "a", proved=True) as fleet:
        run = begun(store)
        fleet.labs["a"] = WorldLab(STEP, machine="a")
        while len(campaigns_of(store, run)) < 2:
            fleet.do(fleet.jobs()[0])
        fleet.labs["a"].refuses = ("d",)
        ended = finished(fleet, run)
    assert ended.state is RunState.FAILED
    assert "d cannot be measured" in ended.why


PROFILED = WorldStudy(profiled=True)


def profiled_by(store: Store, run: SharedRun) -> list[str]:
    """The machine that took each stored profile of a run, and it is one of both sides."""
    pairs = stored_profiles(store, (each.id for each in campaigns_of(store, run)))
    for pair in pairs:
        assert pair.names == ("c", "d")
        assert pair.before is not None
        assert pair.after is not None
        assert pair.before.stacks == pair.after.stacks
    return [name for pair in pairs if pair.before for name in pair.before.stacks]


def until_profiled(fleet: Fleet, run: SharedRun) -> str:
    """Do all jobs but the one that profiles; the machine that is to."""
    while not now(fleet.store, run).answered:
        fleet.do(fleet.jobs()[0])
    return now(fleet.store, run).profiling


def test_one_machine_that_took_part_profiles_both_sides_after_the_answer(store: Store) -> None:
    with fleet_of(store, "a", "b", "c", study=PROFILED) as fleet:
        run = begun(store)
        machine = until_profiled(fleet, run)
        assert campaigns_of(store, run)[0].boundary is not None
        assert now(store, run).state is RunState.RUNNING
        (job,) = [each for each in fleet.jobs() if each["task_name"] == "dsbisect.profile"]
        told = RecordingObserver()
        RunTold(store, PROFILED, told)._tell(now(store, run), LINE)
        assert told.names[-2:] == ["answered", "preparing"]
        assert told.records[-1] == ("preparing", "a", f"profiled by {machine}")
        ended = finished(fleet, run)
        assert (ended.state, ended.unprofiled) == (RunState.DONE, "")
        assert machine in ended.took_part
        assert profiled_by(store, run) == [machine]
        fleet.do(job)  # it comes twice
        assert profiled_by(store, run) == [machine]
    prove_whole(store, run)


def test_a_machine_that_dies_before_it_profiles_is_replaced(store: Store) -> None:
    with fleet_of(store, "a", "b", study=PROFILED) as fleet:
        run = begun(store)
        machine = until_profiled(fleet, run)
        fleet.dies(machine)
        (other,) = fleet.workers
        assert finished(fleet, run).state is RunState.DONE
        assert profiled_by(store, run) == [other]


def test_a_machine_that_comes_back_profiles_where_no_other_is_there(store: Store) -> None:
    with fleet_of(store, "a", study=PROFILED) as fleet:
        run = begun(store, machines=1)
        assert until_profiled(fleet, run) == "a"
        fleet.dies("a")
        fleet.comes("a")
        assert finished(fleet, run).state is RunState.DONE
        assert profiled_by(store, run) == ["a"]


def test_a_machine_that_cannot_profile_is_left_out_and_another_does(store: Store) -> None:
    with fleet_of(store, "a", "b", study=PROFILED) as fleet:
        run = begun(store)
        broken = until_profiled(fleet, run)
        fleet.labs[broken].breaks = True
        ended = finished(fleet, run)
        assert (ended.state, ended.unprofiled) == (RunState.DONE, "")
        assert list(ended.left_out) == [broken]
        (other,) = fleet.workers.keys() - {broken}
        assert profiled_by(store, run) == [other]


def test_an_answer_stays_where_no_machine_can_profile(store: Store) -> None:
    with fleet_of(store, "a", "b", study=PROFILED) as fleet:
        run = begun(store)
        until_profiled(fleet, run)
        for lab in fleet.labs.values():
            lab.breaks = True
        ended = finished(fleet, run)
        assert ended.state is RunState.DONE
        assert ended.unprofiled.count("podman is gone") == 2
        assert profiled_by(store, run) == []
    prove_whole(store, run)


def test_where_the_log_of_a_failed_build_is_is_told_with_its_machine(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        for name in "ab":
            fleet.labs[name] = WorldLab(STEP, machine=name, refuses=["c"])
        finished(fleet, run)
        refused = {
            why: turn.machine for turn in turns_of(store, run) for why in turn.refused.values()
        }
        assert refused == {
            f"unbuildable: no such header\n  log on {name}: {LOG}": name
            for name in refused.values()
        }
        told = RecordingObserver()
        RunTold(store, WorldStudy(machine="user"), told).until_ended(run.id)
    (why,) = (str(why) for name, *_, why in told.records if name == "unmeasurable")
    assert why in refused


def test_the_log_of_what_ended_a_run_or_was_not_prepared_is_told_with_its_machine(
    store: Store,
) -> None:
    """As where three builds fail alike; and that of a candidate that could not be prepared."""
    with fleet_of(store, "a") as fleet:
        run = begun(store)
        fleet.labs["a"] = WorldLab(STEP, machine="a", refuses=LINE)
        ended = finished(fleet, run)
        assert ended.state is RunState.FAILED
        assert f"  log on a: {LOG}\n" in ended.why
        again = begin_run(store, {"world": "again"}, machines=2, class_name="")
        why = f"unbuildable: no such header\n  log: {LOG}"
        fleet.labs["a"] = WorldLab(STEP, machine="a", unmeasurable={LINE[0]: why})
        ended = finished(fleet, again)
        assert ended.unmeasurable == {LINE[0]: why.replace("log:", "log on a:")}


def test_why_a_side_has_no_profile_is_told_with_the_answer(store: Store) -> None:
    def fails() -> None:
        raise EngineError("perf may not look at processes", hint="run it as root")

    with fleet_of(store, "a", "b", study=PROFILED) as fleet:
        run = begun(store)
        until_profiled(fleet, run)
        for lab in fleet.labs.values():
            lab.before_sample = fails
        ended = finished(fleet, run)
        assert (ended.state, ended.left_out) == (RunState.DONE, {})
        told = RecordingObserver()
        RunTold(store, PROFILED, told).until_ended(run.id)
        why = "not profiled: c: perf may not look at processes"
        assert ("preparing", "a", why) in told.records
