"""What workers say becomes figures and a verdict; the text is a real run's output."""

from __future__ import annotations

from dataclasses import replace

import pytest
from goldens import ROOT, assert_golden
from hypothesis import given
from hypothesis import strategies as st

from dsharness.loads import LIVE, LoadReport
from dsharness.loads.load_driver import OVER, LiveSeconds
from dsharness.model import Latencies
from dsresults.compare.driven_load import (
    STOPPED,
    DrivenLoad,
    WorkerEnd,
    WorkerFigures,
    driven_load,
    told_load,
    worker_heard,
)

LOAD = LIVE["ldapload"]
WHOLE = (ROOT / "ldapload" / "live.txt").read_text(encoding="utf-8")
CUT = WHOLE[: WHOLE.index(OVER, WHOLE.index(OVER) + 1) + 40]  # two seconds, and a part of the third


def second(cpu_us: int, starved_us: int, of_s: float = 1.0) -> str:
    """A second in which a hundred operations took 5 ms each."""
    said = (
        "operations 100", f"seconds {of_s:.6f}", f"cpu {cpu_us}", f"starved {starved_us}",
        "time search 5000 100", "over",
    )  # fmt: skip
    return "".join(f"now {line}\n" for line in said)


def heard(text: str, name: str = "worker 1") -> tuple[WorkerFigures, LoadReport]:
    return worker_heard(LOAD, name, text, "its.log", asked_s=2.4)


def together(*texts: str, asked: float | None = None) -> DrivenLoad:
    said = [heard(text, f"worker {number}") for number, text in enumerate(texts, start=1)]
    return driven_load("debian-12", "searches", asked, said, 120_000.0)


def test_the_seconds_of_a_run_are_all_of_it() -> None:
    seconds = LiveSeconds(LOAD)
    each = [part for line in WHOLE.splitlines() if (part := seconds.hear(line))]
    joined, whole = LoadReport.joined(each), LOAD.parse(WHOLE)
    assert [part.total for part in each] == [50, 50, 20]
    assert joined.total == whole.total == 120
    assert joined.latencies == whole.latencies
    assert joined.late == whole.late
    assert joined.client_cpu_us == pytest.approx(whole.client_cpu_us, abs=3)
    assert joined.active_s == pytest.approx(whole.active_s, abs=1e-5)


Times = st.dictionaries(st.integers(1, 2_000_000), st.integers(1, 50), min_size=1, max_size=20)


@given(st.lists(Times, min_size=1, max_size=6))
def test_workers_merge_without_loss(parts: list[dict[int, int]]) -> None:
    """The percentiles of all are those of one worker that had all the operations."""
    reports = [
        LoadReport(total=sum(part.values()), latencies={"search": Latencies.of(part)})
        for part in parts
    ]
    counts: dict[float, int] = {}
    for part in parts:
        for time_us, count in part.items():
            counts[time_us] = counts.get(time_us, 0) + count
    joined = LoadReport.joined(reports)
    assert joined.latencies == {"search": Latencies.of(counts)}
    assert joined.total == sum(counts.values())


@pytest.mark.parametrize(
    ("text", "end", "operations"),
    [
        (WHOLE, WorkerEnd.WHOLE, 120),
        (f"{CUT}\n{STOPPED}\n", WorkerEnd.STOPPED, 100),
        (f"{CUT}\nload ended with status 137\n", WorkerEnd.DIED, 100),
        (CUT, WorkerEnd.DIED, 100),
        ("failed cannot connect: Connection refused\n", WorkerEnd.DIED, 0),
        ("", WorkerEnd.DIED, 0),
    ],
)
def test_a_worker_counts_to_its_last_whole_second(
    text: str, end: WorkerEnd, operations: int
) -> None:
    figures, report = heard(text)
    assert (figures.end, figures.operations) == (end, operations)
    assert sum(each.count for each in report.latencies.values()) == operations


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("load ended with status 137\nKilled\n", "load ended with status 137; Killed"),
        ("failed no port\nload ended with status 2\n", "failed no port"),
        ("", "it said nothing"),
    ],
)
def test_a_dead_worker_is_named_with_its_last_words_and_its_log(text: str, words: str) -> None:
    found = together(WHOLE, f"{CUT}\n{text}")
    assert found.objections == (f"worker 2 ended before its time: {words} (its.log)",)
    assert found.operations == 220, "what was measured until then is told"


def test_a_worker_that_the_server_turned_away_ended_before_its_time() -> None:
    """It ends by itself once all its connections are lost; what it made is no rate."""
    text = WHOLE.replace("finished", "error 2 the connection was closed\nfinished")
    figures, _ = worker_heard(LOAD, "worker 1", text, "its.log", asked_s=60)
    assert figures.end is WorkerEnd.DIED
    assert figures.objections == (
        "worker 1 ended before its time: error 2 the connection was closed (its.log)",
    )


def test_a_load_that_a_ctrl_c_ends_is_no_dead_worker() -> None:
    figures, _ = worker_heard(LOAD, "worker 1", CUT, "its.log", asked_s=60, stopped=True)
    assert (figures.end, figures.objections) == (WorkerEnd.STOPPED, ())


@pytest.mark.parametrize(
    ("cpu_us", "starved_us", "short", "limit"),
    [
        (200_000, 20_000, 10, False),  # a fifth of a CPU is no limit
        (880_000, 40_000, 10, True),  # all of it is
        (30_000, 600_000, 10, True),  # by a schedule: it had little to do, and late
        (30_000, 600_000, 1, False),  # a single second of ten
        (30_000, 600_000, 2, True),
    ],
)
def test_a_load_that_was_its_own_limit_says_so(
    cpu_us: int, starved_us: int, short: int, limit: bool
) -> None:
    calm = 10 - short
    text = short * second(cpu_us, starved_us) + calm * second(30_000, 1_000)
    found = together(f"{text}{STOPPED}\n")
    assert bool(found.objections) is limit
    if limit:
        (why,) = found.objections
        assert why == f"the load was the limit: worker 1 had too little CPU in {short} of 10 s"


def test_a_ceiling_is_what_an_operation_costs() -> None:
    figures, _ = heard(second(20_000, 0) + f"{STOPPED}\n")
    assert figures.ceiling_per_s == pytest.approx(5000)
    assert (figures.cpu_pct, figures.waited_pct) == pytest.approx((2.0, 0.0))
    assert heard("")[0].ceiling_per_s is None


def test_nothing_answered_is_no_verdict() -> None:
    assert together(f"{STOPPED}\n").objections == ("no operation was answered",)


def test_all_of_it_as_text() -> None:
    parts = [heard(WHOLE, "worker 1"), heard(second(20_000, 10_000) + f"{STOPPED}\n", "worker 2")]
    figures, report = parts[1]
    errors = {"search: 0 entries instead of 1": 3}
    parts[1] = (figures.model_copy(update={"errors": errors}), replace(report, errors=errors))
    found = driven_load("debian-12", "searches", 200.0, parts, 24_200.0)
    assert found.errors == errors
    behind = together(WHOLE, WHOLE, asked=200.0)
    texts = ["\n".join(told_load(each)) for each in (found, together(WHOLE, CUT), behind)]
    assert_golden("report/driven-load.txt", "\n\n".join(texts) + "\n")
    assert DrivenLoad.model_validate_json(found.model_dump_json()) == found
