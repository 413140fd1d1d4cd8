"""Profiles of a found step: stored once, never an answer, and in the report that is drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import typer
from observers import RecordingObserver
from shipped import MATRIX
from store_values import BOUNDARY, EXPORT, FINISHED

from dsbisect.cli.stored_answers import _asked, _chosen, _finding
from dsbisect.cli.told_answers import tell_doubted
from dsharness.errors import EngineError, ExitCode, InstanceError, StoppedError
from dsharness.model import (
    CpuProfile,
    FunctionCounts,
    HeapGrowth,
    KindTimes,
    Latencies,
    ServerTimes,
    StayingHeap,
    ThreadWaits,
    ToolRuns,
    WaitingPlace,
    Workload,
)
from dslab.step_profiles import profile_pair, profile_steps, sides_of
from dsresults.profile_pair import count_changes, doubted, heap_changes, profiles_of, wait_changes
from dsresults.store import Store

LOAD = MATRIX.workloads[0].model_copy(update={"id": FINISHED.workload_id})


@dataclass
class ToldProfiler:
    """Says what it was told to, and for whom it was asked."""

    refused: dict[str, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    silent: frozenset[str] = frozenset()
    no_log: bool = False
    others: dict[str, float] = field(default_factory=dict)

    def profile(self, candidate: str, workload: Workload) -> CpuProfile:
        self.asked.append(candidate)
        if candidate in self.refused:
            raise self.refused[candidate]
        return CpuProfile(
            candidate_id=candidate, workload_id=workload.id, event="cpu-clock",
            operations=10, cpu_us_per_op=5.0, stacks={"main": 4},
        )  # fmt: skip

    def function_counts(self, candidate: str, workload: Workload) -> FunctionCounts:
        return FunctionCounts(
            candidate_id=candidate, workload_id=workload.id, operations=9,
            per_operation={"main": 100.0 if candidate == BOUNDARY.before else 250.0},
        )  # fmt: skip

    def heap_growth(self, candidate: str, workload: Workload) -> HeapGrowth:
        leak = StayingHeap(place=("malloc", "do_search"), bytes_per_operation=700)
        stays = () if candidate == BOUNDARY.before else (leak,)
        return HeapGrowth(
            candidate_id=candidate, workload_id=workload.id, operations=9, stays=stays
        )  # fmt: skip

    def thread_waits(self, candidate: str, workload: Workload) -> ThreadWaits:
        often = 4.0 if candidate == BOUNDARY.before else 1000.0
        wait = WaitingPlace(thread="poller", place=("poll", "main"), per_operation=often)
        return ThreadWaits(
            candidate_id=candidate, workload_id=workload.id, operations=9, waits=(wait,)
        )

    def server_times(self, candidate: str, workload: Workload) -> ServerTimes | None:
        self.logged.append(candidate)
        if candidate in self.silent:
            raise InstanceError("its log cannot be read")
        kind = KindTimes(whole=Latencies.of({100: 9}), middle=("a",), slowest=("b",))
        return None if self.no_log else ServerTimes(
            candidate_id=candidate, workload_id=workload.id, kinds={"search": kind}
        )  # fmt: skip

    def second_tool(self, candidate: str, workload: Workload) -> ToolRuns | None:
        if candidate not in self.others:
            return None
        own = 1.0 if candidate == BOUNDARY.before else 2.0
        return ToolRuns(
            candidate_id=candidate, workload_id=workload.id, tool="authrate",
            own=(own, own + 0.01, own), other=(self.others[candidate],) * 3,
        )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.db") as opened, EXPORT.open(encoding="utf-8") as lines:
        opened.import_jsonl(lines)
        yield opened


def test_both_sides_of_a_step_are_profiled_once_and_kept(store: Store) -> None:
    lab, observer = ToldProfiler(), RecordingObserver()
    (pair,) = profile_steps([FINISHED], [LOAD], lab, store, observer)
    assert pair.names == (BOUNDARY.before, BOUNDARY.after) == tuple(lab.asked)
    assert pair.names == tuple(lab.logged) == tuple(each.candidate_id for each in pair.times)
    assert profile_steps([FINISHED], [LOAD], lab, store, observer) == (pair,)
    assert len(lab.asked) == 2, "the second time it comes from the store"
    assert profiles_of(store.findings(), [FINISHED.id]) == (pair,)


def test_a_profile_stands_for_its_campaign_and_is_no_answer(store: Store) -> None:
    (pair,) = profile_steps([FINISHED], [LOAD], ToldProfiler(), store, RecordingObserver())
    assert _finding(store, []) is None
    assert _finding(store, [FINISHED.id]) is None
    assert _asked(store, pair.finding.id) == (FINISHED.id,)
    assert [each.id for each in _chosen(store, [FINISHED.id])] == [FINISHED.id]


def test_what_cannot_be_profiled_says_why_and_is_tried_again(store: Store) -> None:
    lab = ToldProfiler(refused={str(BOUNDARY.after): EngineError("perf saw nothing")})
    (pair,) = profile_steps([FINISHED], [LOAD], lab, store, RecordingObserver())
    assert (pair.before is not None, pair.after) == (True, None)
    assert pair.note == f"{BOUNDARY.after}: perf saw nothing"
    assert not pair.changes
    assert not store.findings()
    assert len(pair.times) == 2, "a side without a profile still has its log"


def test_what_writes_no_log_has_no_times_and_is_not_asked_again(store: Store) -> None:
    lab = ToldProfiler(no_log=True)
    (pair,) = profile_steps([FINISHED], [LOAD], lab, store, RecordingObserver())
    assert (pair.times, pair.times_note) == ((), "")
    assert profiles_of(store.findings(), [FINISHED.id]) == (pair,)


def test_what_decided_says_which_witnesses_are_asked(store: Store) -> None:
    lab = ToldProfiler()
    plain = profile_pair("c", ("old", "new"), LOAD, lab, RecordingObserver(), metric="cost")
    assert (plain.counts, plain.heap, plain.waits) == ((), (), ())
    counting = FINISHED.model_copy(update={"metric": "instructions"})
    (pair,) = profile_steps([counting], [LOAD], lab, store, RecordingObserver())
    (change,) = count_changes(pair)
    assert (change.function, change.before, change.after) == ("main", 100.0, 250.0)
    assert pair.heap == ()
    growing = FINISHED.model_copy(update={"metric": "growth", "id": "other"})
    (pair,) = profile_steps([growing], [LOAD], lab, store, RecordingObserver())
    (leak,) = heap_changes(pair)
    assert (leak.function, leak.before, leak.after) == ("malloc ← do_search", 0.0, 700.0)
    assert pair.counts == ()
    for metric in ("context-switches", "wake-ups"):
        waking = FINISHED.model_copy(update={"metric": metric, "id": metric})
        (pair,) = profile_steps([waking], [LOAD], lab, store, RecordingObserver())
        (waits,) = wait_changes(pair)
        assert (waits.function, waits.before, waits.after) == ("poller: poll ← main", 4.0, 1000.0)
        assert (pair.counts, pair.heap) == ((), ())


def test_one_side_without_its_log_is_no_pair_of_times(store: Store) -> None:
    lab = ToldProfiler(silent=frozenset({str(BOUNDARY.after)}))
    (pair,) = profile_steps([FINISHED], [LOAD], lab, store, RecordingObserver())
    assert pair.after is not None
    assert pair.times == ()
    assert pair.times_note == f"{BOUNDARY.after}: its log cannot be read"
    assert not store.findings()


def test_a_second_tool_that_sees_no_step_makes_the_answer_doubted(store: Store) -> None:
    before, after = str(BOUNDARY.before), str(BOUNDARY.after)
    lab = ToldProfiler(others={before: 1.5, after: 2.5})
    (agreed,) = profile_steps([FINISHED], [LOAD], lab, store, RecordingObserver())
    assert agreed.tool_step is not None
    assert agreed.tool_step.agree
    assert doubted([agreed]) == ()
    lab = ToldProfiler(others={before: 1.5, after: 1.5})
    other = FINISHED.model_copy(update={"id": "other"})
    (pair,) = profile_steps([other], [LOAD], lab, store, RecordingObserver())
    (said,) = doubted([pair])
    assert said == (
        f"{LOAD.id}: the second tool disagrees, so the answer is not sure: an operation costs "
        "2.00 times as much by the lab's own tool, 1 times by UnboundID's authrate, each with "
        "the cost of its own way"
    )
    with pytest.raises(typer.Exit) as ended:
        tell_doubted([agreed, pair])
    assert ended.value.exit_code == ExitCode.INCONCLUSIVE


def test_a_stop_is_a_stop(store: Store) -> None:
    lab = ToldProfiler(refused={str(BOUNDARY.before): StoppedError("stopped")})
    with pytest.raises(StoppedError):
        profile_steps([FINISHED], [LOAD], lab, store, RecordingObserver())


def test_without_a_step_it_is_both_ends() -> None:
    none = BOUNDARY.model_copy(update={"direction": "none", "before": None, "after": None})
    campaign = FINISHED.model_copy(update={"boundary": none})
    assert sides_of(campaign) == (none.line[0], none.line[-1])
