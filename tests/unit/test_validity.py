"""The gate: each fault has its objection, and no fault can talk another one away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model import StoredPassword, Workload
from dsharness.validity import Evidence, objections, spell
from dsharness.workloads.ldclt import Report

STORED = StoredPassword(scheme="PBKDF2-SHA512", rounds=10_000)
WORKLOAD = Workload(id="w", title="a load", threads=4, warmup_s=1, duration_s=3)
REPORT = Report(
    per_second=(180, 190, 191, 189), total=750, errors={}, exit_status=0, client_cpu_us=90_000
)
GOOD = Evidence(
    workload=WORKLOAD,
    report=REPORT,
    duration_s=4.2,
    server_alive=True,
    server_binds=752,
    server_cpu_us=3_900_000,
    load_cpus=1,
    pinned=True,
    steal_pct=0.4,
    expected=STORED,
    stored=STORED,
)


def with_report(**changes: object) -> Evidence:
    return replace(GOOD, report=replace(REPORT, **changes))


def test_a_good_run_has_nothing_against_it() -> None:
    assert objections(GOOD) == ()


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (with_report(errors={"49 (Invalid credentials)": 2}), "error 49 (Invalid credentials) 2 t"),
        (with_report(dead_threads=1), "1 of 4 load threads died"),
        (with_report(inactive=True), "no activity"),
        (with_report(exit_status=None), "the load did not finish"),
        (with_report(exit_status=4), "the load ended with status 4"),
        (with_report(per_second=(180, 190, 191)), "3 one-second readings, expected 4"),
        (with_report(per_second=(180, 190, 0, 189)), "a second without a single operation"),
        (with_report(total=None), "the load reports no operation"),
        (with_report(total=0), "the load reports no operation"),
        (with_report(client_cpu_us=None), "the load's CPU time could not be read"),
        (with_report(client_cpu_us=4_100_000), "the load used 98% of its CPUs"),
        (
            replace(with_report(client_cpu_us=1_900_000), pinned=False),
            "49% of the server's CPU time on the same CPUs",
        ),
        (replace(GOOD, server_binds=700), "the server counted 700 binds, the load 750"),
        (replace(GOOD, server_binds=800), "the server counted 800 binds, the load 750"),
        (replace(GOOD, server_binds=None), "own count of binds could not be read"),
        (replace(GOOD, server_cpu_us=0), "the server used no CPU time"),
        (replace(GOOD, server_cpu_us=None), "the server's CPU time could not be read"),
        (replace(GOOD, stored=None), "the stored password could not be read back"),
        (
            replace(GOOD, stored=StoredPassword(scheme="PBKDF2_SHA256", rounds=2048)),
            "stored as PBKDF2_SHA256 with 2048 rounds, not PBKDF2-SHA512 with 10000 rounds",
        ),
        (
            replace(GOOD, stored=STORED.model_copy(update={"rounds": 100_000})),
            "with 100000 rounds, not PBKDF2-SHA512 with 10000 rounds",
        ),
        (replace(GOOD, steal_pct=3.1), "the hypervisor took 3.1 % of the server's CPUs away"),
    ],
)
def test_each_fault_has_its_own_objection(evidence: Evidence, reason: str) -> None:
    told = objections(evidence)
    assert len(told) == 1, told
    assert reason in told[0]


def test_a_server_that_died_is_one_reason_not_four() -> None:
    dead = replace(
        GOOD, server_alive=False, server_binds=None, server_cpu_us=None, stored=None
    )  # fmt: skip
    assert objections(dead) == ("the server died during the load",)


@pytest.mark.parametrize(
    "evidence",
    [
        with_report(per_second=(0, 190, 191, 189)),  # the warm-up may be slow to begin
        replace(GOOD, server_binds=746),  # a thread's last bind each
        replace(GOOD, server_binds=757),  # 0.9 %
        replace(GOOD, steal_pct=3.0),
        replace(with_report(client_cpu_us=1_100_000), pinned=False),
        with_report(client_cpu_us=3_700_000),  # 88 % of CPUs that nobody else uses
    ],
)
def test_what_is_within_bounds_passes(evidence: Evidence) -> None:
    assert objections(evidence) == ()


def test_bindonly_alone_does_not_pass_for_a_fast_server() -> None:
    fooled = with_report(per_second=(37e6,) * 4, total=147_458_446, client_cpu_us=4_030_000)
    assert any("the server counted 752 binds" in reason for reason in objections(fooled))


COUNTS = st.none() | st.integers(0, 10**6)
TIMES = st.none() | st.floats(0, 1e8)
PASSWORDS = st.sampled_from([None, STORED, StoredPassword(scheme="SSHA512")])
EVIDENCE = st.builds(
    Evidence,
    workload=st.just(WORKLOAD),
    report=st.builds(
        Report,
        per_second=st.lists(st.floats(0, 1e6), max_size=6).map(tuple) | st.just(REPORT.per_second),
        total=COUNTS,
        errors=st.dictionaries(st.text(max_size=9), st.integers(1, 99), max_size=2),
        dead_threads=st.integers(0, 4),
        inactive=st.booleans(),
        exit_status=st.none() | st.integers(0, 9),
        client_cpu_us=TIMES,
    ),
    duration_s=st.floats(0.1, 100),
    server_alive=st.booleans(),
    server_binds=COUNTS,
    server_cpu_us=TIMES,
    load_cpus=st.integers(0, 8),
    pinned=st.booleans(),
    steal_pct=st.floats(0, 100),
    expected=st.just(STORED),
    stored=PASSWORDS,
) | st.just(GOOD)


@given(EVIDENCE, st.text(max_size=9), st.integers(1, 10**6))
def test_one_more_error_never_makes_a_sample_valid(
    evidence: Evidence, error: str, times: int
) -> None:
    errors = {**evidence.report.errors, f"new {error}": times}
    worse = replace(evidence, report=replace(evidence.report, errors=errors))
    assert set(objections(worse)) > set(objections(evidence))


@given(EVIDENCE, st.integers(1, 4))
def test_a_dead_thread_never_makes_a_sample_valid(evidence: Evidence, dead: int) -> None:
    assert objections(replace(evidence, report=replace(evidence.report, dead_threads=dead)))


@given(EVIDENCE)
def test_a_dead_server_never_makes_a_sample_valid(evidence: Evidence) -> None:
    assert "the server died during the load" in objections(replace(evidence, server_alive=False))


@given(EVIDENCE)
def test_the_same_evidence_gets_the_same_answer(evidence: Evidence) -> None:
    assert objections(evidence) == objections(evidence)


@pytest.mark.parametrize(
    ("stored", "words"),
    [(STORED, "PBKDF2-SHA512 with 10000 rounds"), (StoredPassword(scheme="SSHA512"), "SSHA512")],
)
def test_a_stored_password_in_words(stored: StoredPassword, words: str) -> None:
    assert spell(stored) == words
