"""A standing watch as a page and as text: alarms first, then each series with its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from dsharness.model import Value
from dsresults.compare.usage_courses import CoursePoint
from dsresults.number_text import duration, significant
from dsresults.report.html_page import page_environment, utc
from dsresults.report.percentile_chart import PLOT, LinePlot
from dsresults.report.report_source import write_files
from dsresults.report.usage_chart import course_plot
from dsresults.watched_series import Alarm, WatchedSeries, WatchedTip, points_of

FEWEST = 2  # points that make a line


class WatchedBranchTips(Value):
    """One series, as it is shown."""

    series: WatchedSeries
    tips: tuple[WatchedTip, ...]


class WatchState(Value):
    """All that a watch has to tell."""

    id: str
    series: tuple[WatchedBranchTips, ...]
    alarms: tuple[Alarm, ...]

    @property
    def open(self) -> tuple[Alarm, ...]:
        return tuple(alarm for alarm in self.alarms if alarm.state.open)

    @property
    def answer(self) -> str:
        """The first sentence of every report of it."""
        tips = [tip for each in self.series for tip in each.tips]
        spent = duration(sum(tip.seconds for tip in tips))
        seen = f"{len(tips)} tips in {len(self.series)} series, {spent} of measuring"
        if not self.open:
            return f"no alarm is open; {seen}"
        return f"{len(self.open)} open: {', '.join(alarm.id for alarm in self.open)}; {seen}"


def watch_state(name: str, tips: Sequence[WatchedTip], alarms: Sequence[Alarm]) -> WatchState:
    """Group tips by series, and keep the alarms of these."""
    groups: dict[str, list[WatchedTip]] = {}
    for tip in tips:
        groups.setdefault(str(tip.series) + tip.series.metric, []).append(tip)
    ours = tuple(
        alarm
        for alarm in alarms
        if any(event.series and event.series.watch == name for event in alarm.events)
    )
    return WatchState(
        id=name,
        series=tuple(
            WatchedBranchTips(series=tips[0].series, tips=tuple(tips)) for tips in groups.values()
        ),
        alarms=ours,
    )


def series_chart(shown: WatchedBranchTips) -> LinePlot | None:
    """Its level over the tips, as a multiple of the first reference; None of fewer than two."""
    points = points_of(shown.tips)
    if len(points) < FEWEST:
        return None
    begun = _at_s(points[0].at)
    line = [
        CoursePoint(
            at_s=_at_s(point.at) - begun, middle=point.ratio, low=point.low, high=point.high
        )
        for point in points
    ]
    marks = {line[0].at_s: points[0].at[:10], line[-1].at_s: points[-1].at[:10]}
    return course_plot(
        shown.series.workload,
        f"{shown.series.metric} on {shown.series.branch}",
        {shown.series.branch: line},
        unit="\u00d7",
        across_title="when the tip was measured",
        marks=marks,
    )


def _at_s(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def render_watch(state: WatchState) -> str:
    """The whole page as one HTML document."""
    environment = page_environment()
    environment.filters.update(significant=significant, utc=utc)
    environment.globals.update(plot=PLOT, series_chart=series_chart)
    return environment.get_template("watch.html.jinja").render(state=state)


def write_watch(folder: Path, state: WatchState) -> Path:
    """Write watch.json and watch.html, completely or not at all; the page's path."""
    html, page = render_watch(state), folder / "watch.html"
    write_files(folder, {"watch.json": state.model_dump_json(indent=2) + "\n", page.name: html})
    return page


def told_watch(state: WatchState) -> Iterator[str]:
    """The answer, a line for each alarm, and the latest tip of each series."""
    yield f"{state.id}: {state.answer}"
    for alarm in state.alarms:
        yield f"  {alarm.id}  {alarm.state.value:<10} {alarm.title or alarm.events[-1].note}"
    for each in state.series:
        last = each.tips[-1]
        yield f"  {each.series}: {last.tip[:12]} {utc(last.at)}: {last.summary}"
