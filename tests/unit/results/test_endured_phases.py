"""What hours of load say: failed operations first, then what rises more than noise."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from accessibility import needs_browser, serious
from hypothesis import given
from hypothesis import strategies as st
from worlds import sample_of

from dsharness.measure.metrics import CPU, LATENCY_P99, MEMORY, RATE
from dsharness.model import Latencies, Sample, Usage
from dsresults.compare.endured_phases import (
    Endurance,
    endurance_charts,
    endurance_of,
    endured_phase,
)
from dsresults.page.page_html import html_of
from dsresults.page.page_text import text_of

BEGIN = datetime(2026, 11, 27, 6, tzinfo=UTC)


def run(number: int, *, p99_us: float = 900.0, mib: float = 100.0, **changes: object) -> Sample:
    metrics = {
        "rate": RATE.measured(100.0),
        "cpu": CPU.measured(50.0),
        "latency-p99": LATENCY_P99.measured(p99_us),
        "memory": MEMORY.measured(mib),
    }
    facts = {
        "metrics": metrics,
        "operations": 500,
        "duration_s": 5.0,
        "started_at": (BEGIN + timedelta(seconds=5 * number)).isoformat(),
        "latencies": {"search": Latencies.of({300: 450, round(p99_us): 50})},
        "usage": (Usage(at_s=(0.0, 5.0), cpu_us=(0, 25_000), memory_kib=(round(mib * 1024),) * 2),),
    }
    return sample_of("r", 1.0, number, **facts | changes)


def endured(*groups: list[Sample]) -> Endurance:
    return endurance_of(
        row="debian-12",
        workload_id="search",
        title="searches",
        capacity_per_s=1000.0,
        connections=4,
        phases=[endured_phase(100.0 - 10 * n, 100.0, each) for n, each in enumerate(groups)],
    )


def test_runs_that_waited_for_a_cpu_are_told_and_not_used() -> None:
    hungry = {"taken_pct": 70.0, "server_waited_s": 4.0}
    (phase,) = endured([run(0), run(1, **hungry), run(2, **hungry)]).phases
    assert (phase.runs, phase.unusable) == (3, 2)
    assert phase.why == "the server waited for a CPU that other programs had"


def test_a_server_that_answers_everything_has_endured() -> None:
    found = endured([run(n) for n in range(10)], [run(n) for n in range(10, 14)])
    assert found.answer == "endured: none of 7,000 operations failed"
    first, second = found.phases
    assert (first.runs, first.unusable, first.failed, first.operations) == (10, 0, 0, 5000)
    assert first.mean_us == pytest.approx(360, rel=0.01)
    assert (first.at(50.0).us, first.max_us) == (300, 900)
    assert [drift.seen for drift in first.drifts] == [False] * 3
    assert second.drifts == (), "four runs say nothing of what changes"
    assert not found.inconclusive


def test_one_failed_operation_is_enough() -> None:
    bad = run(3, errors=1, invalid=("1 error: no such object",))
    found = endured([run(0), run(1), bad])
    assert found.answer.startswith("not endured: 1 operation of 1")
    assert (found.phases[0].unusable, found.phases[0].why) == (1, "1 error: no such object")
    assert not found.inconclusive, "that it failed is known"


def test_a_phase_that_says_nothing_is_no_success() -> None:
    late = [
        run(n, invalid=("the load was late",), disturbed=("the load was late",)) for n in (0, 1)
    ]
    found = endured([run(9)], late)
    assert found.inconclusive
    assert found.answer == "not known: no run of phase 2 can be used"
    assert "phase 2: 2 of 2 runs not used: the load was late" in text_of(found.page())


@given(st.integers(0, 10**6), st.floats(20.0, 2000.0))
def test_a_leak_is_seen_and_its_size_is_in_the_interval(seed: int, per_hour: float) -> None:
    chance = random.Random(seed)
    noise = 0.02 * per_hour * 60 / 720
    mib = [100 + per_hour * n / 720 + chance.uniform(-noise, noise) for n in range(60)]
    (phase,) = endured([run(n, mib=each) for n, each in enumerate(mib)]).phases
    leak = next(drift for drift in phase.drifts if drift.metric == MEMORY.label)
    assert leak.seen
    assert leak.per_hour == pytest.approx(per_hour, rel=0.1)


@given(st.integers(0, 10**6))
def test_a_latency_that_only_varies_mostly_has_no_drift(seed: int) -> None:
    chance = random.Random(seed)
    seen = 0
    for _ in range(10):
        group = [run(n, p99_us=chance.gauss(900, 90)) for n in range(30)]
        (phase,) = endured(group).phases
        seen += next(d for d in phase.drifts if d.metric == LATENCY_P99.label).seen
    assert seen <= 4  # of ten; by chance half of one


def test_the_page_draws_three_courses_and_marks_the_phases() -> None:
    found = endured([run(n) for n in range(10)], [run(n, mib=120.0) for n in range(10, 20)])
    charts = endurance_charts(found)
    assert [chart.title for chart in charts] == [
        f"{what}, search" for what in ("latency of each run", "CPUs busy", "memory")
    ]
    *marks, _ = (m for m in charts[0].find("text") if m.get("text-anchor") == "middle")
    assert [mark.text for mark in marks] == ["100", "90"]
    assert float(marks[1].get("x", "")) > float(marks[0].get("x", ""))
    assert "100 MiB at first, 120 MiB" in charts[2].description
    page = html_of(found.page())
    assert page.count("<figure>") == 3
    assert "endured: none of" in page
    assert Endurance.model_validate_json(found.model_dump_json()) == found


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    found = endured([run(n) for n in range(10)], [run(n, mib=120.0) for n in range(10, 20)])
    assert serious(html_of(found.page())) == []
