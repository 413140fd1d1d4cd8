"""Hours of load as a page and as text: what failed, and what changed with time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from dsresults.compare.endured_phases import Endurance, EnduranceMoment, EndurancePhase
from dsresults.compare.latency_curves import FEWEST_SLOWER, IN_TABLE
from dsresults.compare.usage_courses import CoursePoint
from dsresults.number_text import significant, whole
from dsresults.page_files import page_environment, utc, write_page
from dsresults.report.percentile_chart import PLOT, LinePlot
from dsresults.report.usage_chart import course_plot

AXIS = "per cent of the top rate, from where a phase begins"
FEWEST_MOMENTS = 2  # that make a line
TOLD = (50.0, 90.0, 99.0)
COLUMNS = "{:>6}{:>9}{:>6}{:>11}{:>8}" + 5 * "{:>8}" + "{:>9}{:>16}"


def endurance_charts(found: Endurance) -> tuple[LinePlot, ...]:
    """Latency, CPUs and memory over the whole time, as far as they are known."""
    return tuple(_charts(found))


def _charts(found: Endurance) -> Iterator[LinePlot]:
    moments = [each for phase in found.phases for each in phase.moments]
    if len(moments) < FEWEST_MOMENTS:
        return
    begun_s = _at_s(moments[0])
    begins = (phase for phase in found.phases if phase.moments)
    marks = {_at_s(p.moments[0]) - begun_s: f"{p.share_pct:g}" for p in begins}

    def line(read: Callable[[EnduranceMoment], CoursePoint | None]) -> list[CoursePoint]:
        return [
            point.model_copy(update={"at_s": _at_s(moment) - begun_s})
            for moment in moments
            if (point := read(moment))
        ]

    charts = (
        (
            "latency of each run",
            " ms",
            {"p50": line(lambda m: _ms(m.p50_us)), "p99": line(lambda m: _ms(m.p99_us))},
        ),
        ("CPUs busy", "", {found.row: line(lambda m: m.cpus_busy)}),
        ("memory", " MiB", {found.row: line(lambda m: m.memory_mib)}),
    )
    for what, unit, lines in charts:
        drawn = {name: each for name, each in lines.items() if len(each) >= FEWEST_MOMENTS}
        if drawn:
            yield course_plot(
                found.workload_id, what, drawn, unit=unit, across_title=AXIS, marks=marks
            )


def _at_s(moment: EnduranceMoment) -> float:
    return datetime.fromisoformat(moment.started_at).timestamp()


def _ms(us: float | None) -> CoursePoint | None:
    return None if us is None else CoursePoint(at_s=0, middle=us / 1e3, low=us / 1e3, high=us / 1e3)


def render_endurance(found: Endurance) -> str:
    """The whole page as one HTML document."""
    environment = page_environment()
    environment.filters.update(significant=significant, utc=utc, whole=whole)
    environment.globals.update(plot=PLOT)
    return environment.get_template("endurance.html.jinja").render(
        found=found, charts=endurance_charts(found), percentiles_shown=IN_TABLE,
        fewest_slower=FEWEST_SLOWER,
    )  # fmt: skip


def write_endurance(folder: Path, found: Endurance) -> Path:
    """Write endurance.json and endurance.html, completely or not at all; the page's path."""
    return write_page(folder, "endurance", render_endurance(found), found)


def told_endurance(found: Endurance) -> Iterator[str]:
    """The answer, a line for each phase, and what drifts."""
    yield f"{found.row}, {found.workload_id}: {found.answer}"
    yield (
        f"{found.title}; {significant(found.capacity_per_s)}/s as answers come; "
        f"{found.connections} connections; ms from when an operation was due"
    )
    yield COLUMNS.format(
        "top %", "asked/s", "runs", "operations", "failed", "mean", "p50", "p90", "p99", "max",
        "CPU us", "memory MiB",
    )  # fmt: skip
    yield from map(_line, found.phases)
    for number, phase in enumerate(found.phases, start=1):
        for drift in phase.drifts:
            if drift.seen:
                yield f"phase {number}: {drift}"
        if phase.why:
            yield f"phase {number}: {phase.unusable} of {phase.runs} runs not used: {phase.why}"


def _line(phase: EndurancePhase) -> str:
    times = [phase.mean_us, *_percentiles(phase, TOLD), phase.max_us]
    memory = phase.memory_mib
    return COLUMNS.format(
        f"{phase.share_pct:g}", significant(phase.asked_per_s), phase.runs, phase.operations,
        phase.failed, *("-" if us is None else significant(us / 1000) for us in times),
        "-" if phase.cpu_us is None else significant(phase.cpu_us),
        "-" if memory is None else f"{significant(memory[0])} to {significant(memory[1])}",
    )  # fmt: skip


def _percentiles(phase: EndurancePhase, percents: Sequence[float]) -> list[float | None]:
    return [each.us if each else None for each in map(phase.at, percents)]
