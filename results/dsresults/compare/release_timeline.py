"""The releases of a product under each load: since when is which slower, and by how much. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise
from xml.etree.ElementTree import Element

from pydantic import Field

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import METRICS
from dsharness.model import DECIDER, Boundary, Value
from dsresults.compare.compared_loads import shown_by
from dsresults.number_text import (
    counted,
    figure,
    interval_text,
    measured_between,
    significant,
    sized,
)
from dsresults.page.chart import (
    Area,
    Axis,
    Chart,
    ChartLine,
    label,
    line,
    line_chart,
    log_axis,
    short_name,
)
from dsresults.page.page import (
    UNKNOWN,
    Bullets,
    Card,
    Cell,
    Column,
    Content,
    Fold,
    Grid,
    Page,
    Row,
    Section,
    Table,
    code,
    note,
)

AREA = Area(width=640.0, left=56.0, right=540.0, top=30.0, bottom=236.0, height=288.0)
SLIGHT = 1.1  # times: a cell that differs less from the first release is not coloured
LETTER = 8.0  # the width of one, at most


class Release(Value):
    """A release, or the newest commit of its repository."""

    name: str
    commit: str
    date: str = Field(description="of its commit")
    series: str = Field(description="the branch that it is of")


class TimelineStretch(Value):
    """Releases that follow each other, under one load: what the search of them said."""

    series: str = Field(default="", description="whose releases they are; empty: of all series")
    boundary: Boundary

    @property
    def step(self) -> tuple[str, str, float] | None:
        """From which release to which the cost changes, and by how many times.

        Of two releases alone: what a longer stretch names is measured again by itself.
        """
        boundary = self.boundary
        if boundary.direction not in {"slower", "faster"} or not boundary.effect:
            return None
        factor = boundary.effect if boundary.direction == "slower" else 1 / boundary.effect
        if boundary.found and len(boundary.line) == 2:
            return boundary.line[0], boundary.line[1], factor
        if boundary.shape == "ramp" and boundary.suspects:
            first = max(0, boundary.line.index(boundary.suspects[0]) - 1)
            return boundary.line[first], boundary.suspects[-1], factor
        return None


class TimelineLoad(Value):
    """One load by one metric, over all releases."""

    workload_id: str
    title: str
    metric: str
    stretches: tuple[TimelineStretch, ...] = ()
    medians: dict[str, float] = Field(
        default_factory=dict, description="of the runs of each release that was measured"
    )

    @property
    def decider(self) -> Metric:
        return METRICS[self.metric]

    @property
    def name(self) -> str:
        """With the metric, where it is not the usual one."""
        return self.workload_id if self.metric == DECIDER else f"{self.workload_id}, {self.metric}"

    @property
    def steps(self) -> tuple[TimelineStretch, ...]:
        """All that changed, those of all series first."""
        return tuple(stretch for stretch in self.stretches if stretch.step)

    @property
    def worst(self) -> float:
        """The largest factor of its steps, either way."""
        factors = (part.step[2] for part in self.steps if part.step)
        return max(factors, key=lambda factor: abs(math.log(factor)), default=1.0)

    @property
    def open(self) -> tuple[TimelineStretch, ...]:
        """What could not be told."""
        return tuple(
            stretch for stretch in self.stretches if stretch.boundary.direction == "unknown"
        )

    @property
    def unmeasured(self) -> dict[str, str]:
        """Releases that could not be measured, and why."""
        return {
            name: why
            for stretch in self.stretches
            for name, why in stretch.boundary.unmeasured.items()
        }

    @property
    def seen_pct(self) -> float | None:
        """What would have been seen where it is flat."""
        seen = [
            stretch.boundary.smallest_visible_pct
            for stretch in self.stretches
            if stretch.boundary.direction == "none"
        ]
        return max((pct for pct in seen if pct is not None), default=None)

    def levels(self, line: Sequence[str], series: str = "", start: float = 1.0) -> Levels:
        """How many times the cost of the first release each of a line has, as far as it is known.

        Between two releases of which nothing is known, or of which only the sum is, there is none.
        """
        known = [stretch for stretch in self.stretches if stretch.series == series]
        if not known:
            return {}
        changes = [part.step for part in known if part.step]
        steps = {after: (before, factor) for before, after, factor in changes}
        unknown = [part.boundary.line for part in known if part.boundary.direction == "unknown"]
        place = {name: number for number, name in enumerate(line)}
        levels: dict[str, float] = {}
        level: float | None = start
        for name in line:
            before, factor = steps.get(name, (name, 1.0))
            if level is not None:
                level *= factor
                for between in line[place[before] + 1 : place[name]]:
                    levels.pop(between, None)
            if any(name in part[1:] for part in unknown):
                level = None
            if level is not None:
                levels[name] = level
        return levels


Levels = dict[str, float]


class ReleaseTimeline(Value):
    """What each load costs, release by release."""

    project: str
    releases: tuple[Release, ...] = Field(description="in the order of their versions")
    loads: tuple[TimelineLoad, ...]
    smallest_pct: float = Field(description="smaller steps were not looked for")
    notes: tuple[str, ...] = Field(default=(), description="of how they were made")
    measured_from: str
    measured_until: str
    searches: tuple[str, ...] = Field(
        default=(), description="commands that find the commits of the steps"
    )

    @property
    def inconclusive(self) -> bool:
        """Whether nothing at all is known."""
        return not any(
            stretch.boundary.direction != "unknown"
            for load in self.loads
            for stretch in load.stretches
        )

    @property
    def trunk(self) -> tuple[str, ...]:
        """The first release of each series, and the newest of all."""
        return trunk_of(self.releases)

    def levels(self, load: TimelineLoad) -> Levels:
        """Of every release."""
        trunk = load.levels(self.trunk)
        levels = dict(trunk)
        for series, names in series_lines(self.releases).items():
            if names[0] in trunk:
                levels |= load.levels(names, series, trunk[names[0]])
        return levels

    def page(self) -> Page:
        worst = max((load.worst for load in self.loads), default=1.0)
        first, *further = timeline_sentences(self)
        return Page(
            title=f"{self.project}, release by release",
            about=(
                f"{counted(len(self.releases), 'release')}, {counted(len(self.loads), 'load')}",
                measured_between(self.measured_from, self.measured_until)
                if self.measured_from
                else "Nothing was measured",
            ),
            answer=[
                Card(headline=first, kind="slower" if worst > 1 else ""),
                *(Card(headline=sentence) for sentence in further),
            ],
            parts=(
                *self._charts(),
                *self._steps(),
                *self._table(),
                *self._unmeasured(),
                note(
                    "Releases are measured next to each other: the ends of a stretch first, and "
                    "what lies between only where they differ; both sides of a step once more by "
                    "themselves. A release that was not measured has what both its neighbours "
                    "have; a change that was taken back within a stretch is not seen."
                ),
                *map(note, self.notes),
            ),
        )

    def _steps(self) -> Iterator[Section]:
        rows = [
            (
                code(load.name),
                _where(stretch),
                Cell(content=_size(load, stretch), kind=_kind(step[2])),
            )
            for load in self.loads
            for stretch in load.steps
            if (step := stretch.step)
        ]
        if rows:
            columns = ("load", "from which release to which", "by how much")
            table = Table(kind="compared timeline", columns=columns, rows=rows)
            commands = [code(command) for command in self.searches]
            fold = Fold(title="What finds the commits", parts=[Bullets(items=commands)])
            yield Section(title="Every step", parts=[table, *([fold] if commands else [])])

    def _charts(self) -> Iterator[Section]:
        charts = [
            Card(kind="plain", title=code(load.name), parts=[timeline_chart(self, load)])
            for load in self.loads
            if len(self.levels(load)) > 1
        ]
        if charts:
            reading = note(
                "Times the cost of the first release, by the date of each release; a dot is a "
                "release whose cost is known. A dashed line is a series that ends with another "
                "cost than the one that follows it."
            )
            yield Section(title="Load by load", parts=[reading, Grid(parts=charts, kind="charts")])

    def _table(self) -> Iterator[Section]:
        levels = [self.levels(load) for load in self.loads]
        if not any(levels):
            return
        columns = [
            Column(title=code(load.name), hint=f"{load.title}, by {load.decider.label}")
            for load in self.loads
        ]
        rows = [
            Row(
                cells=(
                    (code(release.name), f" {release.date[:10]}"),
                    *(
                        _level_cell(load, known, release.name)
                        for load, known in zip(self.loads, levels, strict=True)
                    ),
                )
            )
            for release in reversed(self.releases)
        ]
        table = Table(
            kind="compared timeline",
            caption="Times the cost of the first release; in brackets what was not measured, but "
            "lies between two that are alike",
            columns=("release", *columns),
            rows=rows,
        )
        yield Section(title="Release by release", parts=[table])

    def _unmeasured(self) -> Iterator[Section]:
        reasons: dict[str, list[str]] = {}
        for load in self.loads:
            for name, why in load.unmeasured.items():
                reasons.setdefault(f"{name}: {why}", []).append(load.name)
            for stretch in load.open:
                text = f"{_where(stretch)}: {stretch.boundary.summary}"
                reasons.setdefault(text, []).append(load.name)
        if reasons:
            items = [f"{why} ({', '.join(loads)})" for why, loads in reasons.items()]
            yield Section(title="What is not known", parts=[Bullets(items=items)])


def _kind(factor: float) -> str:
    return "slower" if factor > SLIGHT else "faster" if factor < 1 / SLIGHT else ""


def trunk_of(releases: Sequence[Release]) -> tuple[str, ...]:
    """The first release of each series, and the last one of all."""
    lines = series_lines(releases)
    first = [names[0] for names in lines.values()]
    last = [release.name for release in releases[-1:] if release.name not in first]
    return (*first, *last)


def series_lines(releases: Sequence[Release]) -> dict[str, tuple[str, ...]]:
    """The releases of each series, in order."""
    lines: dict[str, list[str]] = {}
    for release in releases:
        lines.setdefault(release.series, []).append(release.name)
    return {series: tuple(names) for series, names in lines.items()}


def timeline_sentences(timeline: ReleaseTimeline) -> tuple[str, ...]:
    """The answer, then the largest step."""
    total, stepped = len(timeline.loads), [load for load in timeline.loads if load.steps]
    whole = [load for load in timeline.loads if load.stretches and not load.open]
    flat = [load for load in whole if not load.steps]
    number = sum(len(load.steps) for load in stepped)
    seen = max((pct for load in flat if (pct := load.seen_pct) is not None), default=None)
    parts = [
        f"{counted(number, 'step')} under {len(stepped)} of {counted(total, 'load')}"
        if stepped
        else "no step was seen"
    ]
    if flat:
        within = "" if seen is None else f" within {seen:.2g} %"
        cost = "costs" if len(flat) == 1 else "cost"
        parts.append(f"{len(flat)} of {total} {cost} the same from end to end{within}")
    if unknown := total - len(whole):
        parts.append(f"{unknown} not wholly known")
    span = f"{timeline.releases[0].name} to {timeline.releases[-1].name}"
    first = f"{timeline.project} {span}: {'; '.join(parts)}"
    if not stepped:
        return (first,)
    load = max(stepped, key=lambda load: abs(math.log(load.worst)))
    step = next(part for part in load.steps if part.step and part.step[2] == load.worst)
    return first, f"The largest: {load.name}, {_where(step)}, {_size(load, step)}"


def _where(stretch: TimelineStretch) -> str:
    """Between which releases."""
    before, after, _ = stretch.step or (stretch.boundary.line[0], stretch.boundary.line[-1], 1.0)
    return f"{before} to {after}"


def _size(load: TimelineLoad, stretch: TimelineStretch) -> str:
    boundary = stretch.boundary
    return sized(load.decider.words, boundary).rstrip(",") + interval_text(boundary)


def _level_cell(load: TimelineLoad, levels: Mapping[str, float], name: str) -> Content | Cell:
    level = levels.get(name)
    if level is None:
        return UNKNOWN
    words, kind = f"{significant(level)}\u00d7", _kind(level)
    if name not in load.medians:
        return Cell(content=f"({words})", kind=kind)
    value = figure(METRICS[shown_by(load.metric)], load.medians[name])
    return Cell(content=f"{words} {value}", kind=kind)


def timeline_chart(timeline: ReleaseTimeline, load: TimelineLoad) -> Chart:
    """The cost by the date of each release, as a multiple of the first; a line for each series."""
    days = {release.name: _day(release.date) for release in timeline.releases}
    levels = timeline.levels(load)
    trunk = timeline.trunk
    lines = [_chart_line(trunk, levels, days, "first of each", 0)]
    for series, names in series_lines(timeline.releases).items():
        known = [name for name in names if name in levels]
        later = next((name for name in trunk[trunk.index(names[0]) + 1 :] if name in levels), None)
        next_level = levels[later] if later else levels.get(names[0], 1.0)
        if len(known) > 1 and any(_kind(levels[name] / next_level) for name in known[1:]):
            lines.append(_chart_line(names, levels, days, series, 1))
    up = log_axis([*levels.values(), 1.0], lambda value: f"{value:g}\u00d7")
    first, last = min(days.values()), max(days.values())
    years = range(date.fromordinal(first).year + 1, date.fromordinal(last).year + 1)
    marks = {float(date(year, 1, 1).toordinal()): str(year) for year in years}
    across = Axis(low=float(first), high=float(last if last > first else first + 1), marks=marks)
    drawn = line_chart(
        title=f"{load.name}, release by release",
        across=across,
        up=up,
        lines=[chart_line for chart_line in lines if chart_line.points],
        description="; ".join(f"{_where(step)} {_size(load, step)}" for step in load.steps)
        or "no step",
        area=AREA,
    )
    return replace(drawn, shapes=(*drawn.shapes, *_step_marks(load, days, across)))


def _day(moment: str) -> int:
    return date.fromisoformat(moment[:10]).toordinal()


def _chart_line(
    names: Sequence[str], levels: Levels, days: Mapping[str, int], name: str, pattern: int
) -> ChartLine:
    """A line that stays level up to the release with another cost."""
    points: list[tuple[float, float]] = []
    known = [release for release in names if release in levels]
    for before, after in pairwise(known):
        points += [(float(days[before]), levels[before]), (float(days[after]), levels[before])]
    points += [(float(days[release]), levels[release]) for release in known[-1:]]
    title = ", ".join(f"{release} {significant(levels[release])}\u00d7" for release in known)
    return ChartLine(name=short_name(name), title=title, points=points, pattern=pattern, dots=True)


def _step_marks(load: TimelineLoad, days: Mapping[str, int], across: Axis) -> Iterator[Element]:
    """Mark each step of all series; no label is on another."""
    end = -math.inf
    marks = [
        (AREA.x(across, float(days[step[1]])), *step[1:])
        for stretch in load.steps
        if not stretch.series and (step := stretch.step)
    ]
    for x, after, factor in sorted(marks):
        word = "slower" if factor > 1 else "faster"
        words = f"{significant(max(factor, 1 / factor))}\u00d7 {word}, {after}"
        width = LETTER * len(words)
        begin = min(x, AREA.right - width)
        yield line(x, AREA.top - 8, x, AREA.bottom, f"step {word}")
        if begin > end:
            end = begin + width
            yield label(begin, AREA.top - 12, words, f"step-label {word}")
