"""What an operation is made of: its requests' times, and what each program of a system used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from worlds import sample_of

from dsharness.measure.metrics import CPU, LATENCY_P99, MEMORY, RATE
from dsharness.model import Latencies, ProgramUse, Sample
from dsresults.compare.endured_phases import endurance_charts, endurance_of, endured_phase
from dsresults.compare.load_levels import LoadLevels, RowLevels, level_of
from dsresults.compare.operation_parts import OperationParts
from dsresults.page.page_html import html_of
from dsresults.page.page_text import text_of

BEGIN = datetime(2026, 11, 27, 6, tzinfo=UTC)


def run(number: int, *, form_us: int = 3000, cpu_us: float = 8e6, **changes: object) -> Sample:
    """1,000 logins, of which 60 had to wait for the form."""
    facts = {
        "metrics": {
            "rate": RATE.measured(100.0),
            "cpu": CPU.measured(9000.0),
            "latency-p99": LATENCY_P99.measured(90_000),
            "memory": MEMORY.measured(600.0),
        },
        "operations": 1000,
        "duration_s": 10.0,
        "started_at": (BEGIN + timedelta(seconds=10 * number)).isoformat(),
        "latencies": {"login": Latencies.of({50_000: 1000})},
        "steps": {
            "authorize": Latencies.of({form_us: 940, 20_000: 60}),
            "password": Latencies.of({30_000: 1000}),
        },
        "programs": {
            "idp": ProgramUse(cpu_us=cpu_us, memory_kib=512_000),
            "directory": ProgramUse(cpu_us=1e6, memory_kib=102_400),
        },
        **changes,
    }
    return sample_of("r", 1.0, number, **facts)


def test_requests_are_of_all_runs_and_programs_are_medians() -> None:
    parts = OperationParts.of([run(0), run(1, cpu_us=9e6), run(2, cpu_us=30e6)])
    form, password = parts.requests
    assert (form.name, password.name) == ("authorize", "password")
    assert [round(us / 100) for us in form.percentiles_us.values()] == [30, 200, 200]
    assert parts.slowest == password
    assert [(one.name, one.cpu_us, one.memory_mib) for one in parts.programs] == [
        ("idp", 9000, 500),
        ("directory", 1000, 100),
    ]


def test_a_percentile_of_too_few_requests_is_left_out() -> None:
    few = {"authorize": Latencies.of({3000: 110})}
    (form,) = OperationParts.of([run(0, steps=few)]).requests
    assert [*form.percentiles_us] == [50, 95]


def test_loads_without_names_and_systems_of_one_program_have_none() -> None:
    assert OperationParts.of([run(0, steps={}, programs={})]) == OperationParts()
    assert OperationParts.of([]) == OperationParts()


def test_levels_show_them_at_each_rate() -> None:
    level = level_of("r", 100, [run(0), run(1)])
    page = LoadLevels(
        workload_id="w",
        title="logins",
        connections=16,
        asked_runs=2,
        measured_from=BEGIN.isoformat(),
        measured_until=BEGIN.isoformat(),
        rows=(RowLevels.of("r", 100.0, "", [level]),),
    ).page()
    text = text_of(page)
    assert "Requests of an operation" in text
    assert "password" in text
    assert "Programs of the system" in text
    assert "directory" in html_of(page)
    plain = RowLevels.of("r", 100.0, "", [level_of("r", 100, [run(0, steps={}, programs={})])])
    assert "parts" not in plain.model_dump()["levels"][0]


def test_endurance_draws_each_request_over_time() -> None:
    phases = [endured_phase(100.0, 100.0, [run(n) for n in range(4)])]
    endured = endurance_of(
        row="r",
        workload_id="w",
        title="logins",
        capacity_per_s=100.0,
        connections=4,
        phases=phases,
    )
    titles = [chart.title for chart in endurance_charts(endured)]
    assert [title for title in titles if "request" in title] == [
        "p50 by request, w",
        "p95 by request, w",
        "p99 by request, w",
    ]
    assert "Programs of the system" in text_of(endured.page())
