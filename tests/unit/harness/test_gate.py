"""The gate: each fault has its objection, and no fault can talk another one away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import sample_of

from dsharness.loads import LoadReport
from dsharness.measure.gate import (
    Conditions,
    RunEvidence,
    disturbances,
    load_bound,
    objections,
    starved,
)
from dsharness.systems.system import CannotCount

REPORT = LoadReport(
    active_s=4.0, per_second=(180, 190, 191, 189), total=752, errors={}, exit_status=0,
    client_cpu_us=90_000,
)  # fmt: skip
GOOD = RunEvidence(
    operations=752,
    threads=4,
    report=REPORT,
    server_alive=True,
    server_operations=752,
    server_cpu_us=3_900_000,
    of_system=(),
    conditions=Conditions(),
)
SILENT = CannotCount(why="it has no counter")
BUSY = Conditions(gap_s=1.9, stepped_s=1.5)
OUTSIDE = {
    "the lab itself got no CPU for 3.0 s": Conditions(gap_s=3.0),
    "a container was paused for 0.2 s": Conditions(paused_s=0.2),
    "the machine was suspended for 60 s": Conditions(suspended_s=60),
    "the clock was set by -3600 s": Conditions(stepped_s=-3600),
    "the load was ended from outside": Conditions(killed="the load"),
}


def with_report(**changes: object) -> RunEvidence:
    return replace(GOOD, report=replace(REPORT, **changes))


def test_a_good_run_has_nothing_against_it() -> None:
    assert objections(GOOD) == ()


@pytest.mark.parametrize(("counted", "kept"), [(752, True), (751, False), (753, False)])
def test_a_load_may_want_each_of_its_operations_counted(counted: int, kept: object) -> None:
    """Also where it has looked at each answer itself."""
    evidence = replace(with_report(verified=True, exact=True), server_operations=counted)
    told = objections(evidence)
    assert (told == ()) is kept
    assert kept or told == (f"the server counted {counted} operations, the load 752",)


@pytest.mark.parametrize(("planned", "kept"), [(752, True), (760, True), (780, False)])
def test_a_load_may_miss_little_of_its_schedule(planned: int, kept: object) -> None:
    told = objections(replace(GOOD, operations=planned, may_miss=0.02))
    assert (told == ()) is kept


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (with_report(errors={"49 (Invalid credentials)": 2}), "error 49 (Invalid credentials) 2 t"),
        (with_report(exit_status=None), "the load did not finish"),
        (with_report(exit_status=4), "the load ended with status 4"),
        (replace(GOOD, operations=800), "the load made 752 of 800 operations"),
        (with_report(total=None), "the load reports no operation"),
        (with_report(total=0), "the load reports no operation"),
        (replace(GOOD, server_operations=700), "the server counted 700 operations, the load 752"),
        (replace(GOOD, server_operations=800), "the server counted 800 operations, the load 752"),
        (replace(GOOD, server_operations=None), "own count of operations could not be read"),
        (
            replace(GOOD, server_operations=SILENT),
            "not count (it has no counter), and the load",
        ),
        (replace(GOOD, server_cpu_us=0), "the server used no CPU time"),
        (replace(GOOD, server_cpu_us=None), "the server's CPU time could not be read"),
        (replace(GOOD, of_system=None), "the server's settings could not be read back"),
        (replace(GOOD, of_system=("users are stored as SSHA",)), "users are stored as SSHA"),
        (replace(GOOD, of_load=("a query was lost",)), "a query was lost"),
    ],
)
def test_each_fault_has_its_own_objection(evidence: RunEvidence, reason: str) -> None:
    told = objections(evidence)
    assert len(told) == 1, told
    assert reason in told[0]


def test_a_server_that_died_is_one_reason_not_four() -> None:
    dead = replace(
        GOOD, server_alive=False, server_operations=None, server_cpu_us=None, of_system=None
    )  # fmt: skip
    assert objections(dead) == ("the server died during the load",)


@pytest.mark.parametrize(
    "evidence",
    [
        replace(with_report(verified=True), server_operations=SILENT),
        replace(GOOD, server_operations=748),  # a thread's last bind each
        replace(GOOD, server_operations=759),  # 0.9 %
        with_report(per_second=(180, 0, 0, 189)),  # it stood still, and went on
        with_report(per_second=()),
        with_report(client_cpu_us=None),
        replace(GOOD, conditions=BUSY),
        *(replace(GOOD, conditions=conditions) for conditions in OUTSIDE.values()),
    ],
)
def test_nothing_about_the_machine_refuses_a_run_that_came_to_its_end(
    evidence: RunEvidence,
) -> None:
    assert objections(evidence) == ()
    assert disturbances(evidence) == ()


@pytest.mark.parametrize(("words", "conditions"), OUTSIDE.items())
def test_what_failed_while_something_outside_disturbed_it_is_repeated(
    words: str, conditions: Conditions
) -> None:
    failed = replace(with_report(exit_status=None), conditions=conditions)
    assert objections(failed) == ("the load did not finish",)
    assert disturbances(failed) == (words,)


def test_what_only_the_candidate_can_do_is_never_excused() -> None:
    paused = Conditions(paused_s=9.0)
    crashed = replace(GOOD, server_alive=False, conditions=paused)
    rehashed = replace(GOOD, of_system=("users are stored as SSHA",), conditions=paused)
    assert disturbances(crashed) == disturbances(rehashed) == ()


def test_a_load_that_did_not_keep_its_schedule_is_no_candidates_fault() -> None:
    late = ("the load began half of its operations more than 1.4 ms late",)
    assert objections(replace(GOOD, of_load=late)) == late
    assert disturbances(replace(GOOD, of_load=late)) == late
    assert disturbances(replace(GOOD, of_load=late, server_alive=False)) == ()


def test_a_server_that_was_killed_from_outside_did_not_crash() -> None:
    killed = replace(GOOD, server_alive=False, conditions=Conditions(killed="the server"))
    assert objections(killed) == ("the server died during the load",)
    assert disturbances(killed) == ("the server was ended from outside",)


def test_a_server_that_was_ended_for_what_it_wrote_is_at_fault() -> None:
    ended = replace(GOOD, server_alive=False, overfilled="it wrote more than 8192 MiB")
    assert objections(ended) == ("it wrote more than 8192 MiB",)
    assert disturbances(ended) == ()


def test_a_load_without_a_cpu_left_tells_its_own_rate() -> None:
    assert load_bound(3_700_000, 4.0, cpus=1)
    assert not load_bound(3_500_000, 4.0, cpus=1)
    assert not load_bound(3_700_000, 4.0, cpus=2)
    assert not load_bound(None, 4.0, cpus=1)


def test_a_load_that_others_keep_from_its_cpu_sets_the_pace_too() -> None:
    assert load_bound(1_000_000, 4.0, cpus=1, starved_us=2_700_000)
    assert not load_bound(1_000_000, 4.0, cpus=1, starved_us=1_300_000)  # it also waited for others


def test_bindonly_alone_does_not_pass_for_a_fast_server() -> None:
    fooled = with_report(per_second=(37e6,) * 4, total=147_458_446, client_cpu_us=4_030_000)
    assert any("the server counted 752 operations" in reason for reason in objections(fooled))


COUNTS = st.none() | st.integers(0, 10**6)
TIMES = st.none() | st.floats(0, 1e8)
OF_SYSTEM = st.sampled_from([None, (), ("users are stored as SSHA",)])
EVIDENCE = st.builds(
    RunEvidence,
    operations=st.integers(1, 10**6) | st.just(GOOD.operations),
    threads=st.just(4),
    report=st.builds(
        LoadReport,
        active_s=st.none() | st.floats(0, 100),
        per_second=st.lists(st.floats(0, 1e6), max_size=6).map(tuple) | st.just(REPORT.per_second),
        total=COUNTS,
        errors=st.dictionaries(st.text(max_size=9), st.integers(1, 99), max_size=2),
        exit_status=st.none() | st.integers(0, 9),
        client_cpu_us=TIMES,
    ),
    server_alive=st.booleans(),
    server_operations=COUNTS,
    server_cpu_us=TIMES,
    of_system=OF_SYSTEM,
    conditions=st.sampled_from([Conditions(), BUSY, *OUTSIDE.values()]),
) | st.just(GOOD)


@given(EVIDENCE, st.text(max_size=9), st.integers(1, 10**6))
def test_one_more_error_never_makes_a_sample_valid(
    evidence: RunEvidence, error: str, times: int
) -> None:
    errors = {**evidence.report.errors, f"new {error}": times}
    worse = replace(evidence, report=replace(evidence.report, errors=errors))
    assert set(objections(worse)) > set(objections(evidence))


@given(EVIDENCE)
def test_only_a_run_that_may_not_be_used_is_disturbed(evidence: RunEvidence) -> None:
    assert objections(evidence) or not disturbances(evidence)


@given(EVIDENCE)
def test_a_dead_server_never_makes_a_sample_valid(evidence: RunEvidence) -> None:
    assert "the server died during the load" in objections(replace(evidence, server_alive=False))


@given(EVIDENCE)
def test_the_same_evidence_gets_the_same_answer(evidence: RunEvidence) -> None:
    assert objections(evidence) == objections(evidence)


APART = {"id": "one", "facts": {"server_cpus": (0,), "load_cpus": (1,)}}
TOGETHER = {"id": "one", "facts": {"server_cpus": (0, 1), "load_cpus": (0, 1)}}


@pytest.mark.parametrize(
    ("machine", "taken_pct", "server_s", "load_s", "who"),
    [
        (APART, None, None, None, ""),  # an older sample, or a kernel that counts nothing
        (APART, 72.0, 9.9, 0.3, "the server waited"),
        (APART, 4.0, 9.9, 0.3, ""),  # its threads waited for each other
        (APART, 80.0, 0.1, 0.1, ""),  # others had what it did not want
        (APART, 4.0, 0.1, 1.5, "the load waited"),
        (APART, 90.0, 8.6, 1.2, "the server and the load waited"),
        (TOGETHER, 4.0, 0.1, 1.5, ""),  # for the server
        (TOGETHER, 50.0, 0.1, 1.5, "the load waited"),
    ],
)
def test_who_waited_for_a_cpu_that_others_had(
    machine: dict[str, object],
    taken_pct: float | None,
    server_s: float | None,
    load_s: float | None,
    who: str,
) -> None:
    sample = sample_of(
        "r", 1.0, 1, machine=machine, taken_pct=taken_pct,
        server_waited_s=server_s, load_waited_s=load_s,
    )  # fmt: skip
    why = starved(sample)
    assert why.startswith(who)
    assert bool(why) is bool(who)
    assert not starved(sample.model_copy(update={"duration_s": 0.0}))
