"""A chart as a value: scales and axes, then lines, bands, points and bars as SVG. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

MOST_LINES = 6  # that can be told apart, each with a pattern of its own
NAME_LETTERS = 14
NAME_HEIGHT = 17.0
LETTER = 7.2  # the width of one on an axis, at most
BETWEEN = 3.0  # labels of an axis

Places = Sequence[tuple[float, float]]


def shape(
    tag: str, *inside: Element | str, kind: str = "", title: str = "", **facts: float | str
) -> Element:
    """Return an element of a drawing; its title is what a reader who points at it is told."""
    spelled = {
        name.rstrip("_").replace("_", "-"): fact if isinstance(fact, str) else f"{fact:g}"
        for name, fact in facts.items()
    }
    element = Element(tag, {**({"class": kind} if kind else {}), **spelled})
    for part in (*([shape("title", title)] if title else ()), *inside):
        if isinstance(part, str):
            element.text = part
        else:
            element.append(part)
    return element


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return shape("line", x1=x1, y1=y1, x2=x2, y2=y2, kind=kind)


def label(x: float, y: float, words: str, kind: str, anchor: str = "start") -> Element:
    return shape("text", words, x=x, y=y, kind=kind, text_anchor=anchor)


def dot(x: float, y: float, r: float, kind: str, title: str = "") -> Element:
    return shape("circle", cx=x, cy=y, r=r, kind=kind, title=title)


def box(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> Element:
    """Return a rectangle to the tenth of a unit."""
    return shape(
        "rect",
        x=round(x, 1),
        y=round(y, 1),
        width=round(width, 1),
        height=round(height, 1),
        kind=kind,
        title=title,
    )


def path(tag: str, places: Places, kind: str) -> Element:
    """Return a polyline or a polygon through these places."""
    return shape(tag, points=" ".join(f"{x:g},{y:g}" for x, y in places), kind=kind)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing with the words for readers who do not see it."""

    title: str
    description: str
    width: float
    height: float
    shapes: Sequence[Element]
    caption: str = ""
    workload: str = ""
    kind: str = ""  # of its figure
    leads: bool = False  # whether there are links in it
    least_width: float = 0.0  # below which it is scrolled, not made smaller

    def drawn(self, id: str, **facts: str) -> Element:  # noqa: A002 - as SVG calls it
        """Return the SVG element, named for all readers."""
        return shape(
            "svg",
            shape("title", self.title, id=f"plot-{id}"),
            shape("desc", self.description, id=f"plotted-{id}"),
            *self.shapes,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="group" if self.leads else "img",
            aria_labelledby=f"plot-{id}" if self.leads else f"plot-{id} plotted-{id}",
            **({"aria_describedby": f"plotted-{id}"} if self.leads else {}),
            **({"style": f"min-width: {self.least_width:g}px"} if self.least_width else {}),
            **facts,
        )

    def find(self, tag: str, kind: str = "") -> tuple[Element, ...]:
        """Return the shapes of this tag, and of this kind among their kinds."""
        return tuple(
            part
            for shape in self.shapes
            for part in shape.iter(tag)
            if not kind or kind in part.get("class", "").split()
        )


def nines(percent: float) -> float:
    """Return 0 for 0, 1 for 90, 2 for 99, 3 for 99.9: so far apart are they on an axis."""
    return -math.log10(1 - percent / 100)


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Values from low to high, evenly or bent by their logarithms or nines, and its marks."""

    low: float
    high: float
    marks: Mapping[float, str]
    title: str = ""
    bend: Callable[[float], float] = float

    def share(self, value: float) -> float:
        """Return where a value stands: 0 at the low end, 1 at the high one."""
        first, last = self.bend(self.low), self.bend(self.high)
        return (self.bend(value) - first) / ((last - first) or 1.0)


def log_axis(values: Sequence[float], spelled: Callable[[float], str]) -> Axis:
    """Return one around all of them, and wide enough that a steady value looks steady."""
    low, high = min(values), max(values)
    wider = max(1.1, math.sqrt(2 * low / high))
    low, high = low / wider, high * wider
    marks = {value: spelled(value) for value in round_values(low, high)}
    return Axis(low=low, high=high, marks=marks, bend=math.log)


def even_axis(high: float, spelled: Callable[[float], str], title: str = "") -> Axis:
    """Return one from 0 up."""
    return Axis(
        low=0.0,
        high=high,
        marks={value: spelled(value) for value in even_values(high)},
        title=title,
    )


def percent_axis(highest: float) -> Axis:
    """Return the axis of nines, as far as the highest percentile that is reached."""
    most = nines(highest)
    reached = [100 - 100 / 10**count for count in range(1, math.floor(most + 1e-6) + 1)]
    percents_shown = [percent for percent in (0.0, 50.0, *reached) if nines(percent) <= most + 1e-6]
    return Axis(
        low=0.0,
        high=highest,
        marks={percent: f"{round(percent, 6):g}" for percent in percents_shown},
        title="percent of operations that took no longer",
        bend=nines,
    )


def even_values(high: float) -> tuple[float, ...]:
    """Return three to seven values of an axis that begins at 0."""
    power = 10.0 ** math.floor(math.log10(high))
    step = next(part * power for part in (0.2, 0.5, 1.0, 2.0) if high / (part * power) <= 6.5)
    return tuple(round(number * step, 9) for number in range(int(high / step) + 1))


def round_values(low: float, high: float) -> tuple[float, ...]:
    """Return the marks of a log axis: so few that they can be read, and at least two."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = next(steps for most, steps in ROUND_STEPS if high / low < most)
    values = (step * 10.0**power for power in decades for step in steps)
    return tuple(value for value in values if low <= value <= high)


ROUND_STEPS: tuple[tuple[float, tuple[float, ...]], ...] = (  # of an axis with less than this span
    (6, (1, 1.5, 2, 3, 4, 5, 7.5)),  # two of them in any span of 2
    (60, (1, 2, 5)),
    (200, (1, 3)),
    (math.inf, (1,)),
)


@dataclass(frozen=True, kw_only=True)
class Area:
    """Where values are drawn: names stand on its right, marks on its left and below."""

    width: float = 480.0
    left: float = 66.0
    right: float = 362.0
    top: float = 12.0
    bottom: float = 262.0
    height: float = 308.0

    def x(self, axis: Axis, value: float) -> float:
        return round(self.left + (self.right - self.left) * axis.share(value), 1)

    def y(self, axis: Axis, value: float) -> float:
        return round(self.bottom - (self.bottom - self.top) * axis.share(value), 1)

    def up(self, axis: Axis) -> Iterator[Element]:
        """Draw the marks on the left, each with a line across."""
        for value, words in axis.marks.items():
            y = self.y(axis, value)
            yield line(self.left, y, self.right, y, "grid")
            yield label(self.left - 6, y + 4.5, words, "tick", "end")

    def across(self, axis: Axis) -> Iterator[Element]:
        """Draw the marks below, each with a line up; no label is on another."""
        end = -math.inf
        for value, words in axis.marks.items():
            x, half = self.x(axis, value), LETTER * len(words) / 2
            yield line(x, self.top, x, self.bottom, "grid")
            if x - half > end:
                end = x + half + BETWEEN
                yield label(x, self.bottom + 18, words, "tick", "middle")
        middle = (self.left + self.right) / 2
        yield label(middle, self.bottom + 38, axis.title, "tick", "middle")
        yield self.foot()

    def foot(self) -> Element:
        return line(self.left, self.bottom, self.right, self.bottom, "axis")


AREA = Area()


@dataclass(frozen=True, kw_only=True)
class ChartLine:
    """A line through values, as far as its chart's axes reach."""

    name: str
    title: str
    points: Places
    band: Places = ()  # once along its upper end, and back along its lower one
    pattern: int = 0
    dots: bool = False
    marked: Places = ()  # a part of it that matters
    kind: str = ""


def line_chart(
    *,
    title: str,
    across: Axis,
    up: Axis,
    lines: Sequence[ChartLine],
    description: str = "",
    caption: str = "",
    kind: str = "",
    area: Area = AREA,
) -> Chart:
    """Return lines between two axes, each with its name at its end."""
    heights = spread([area.y(up, line.points[-1][1]) for line in lines], area)
    return Chart(
        title=title,
        description=description or "; ".join(line.title for line in lines),
        caption=caption,
        kind=kind,
        width=area.width,
        height=area.height,
        shapes=(
            *area.up(up),
            *area.across(across),
            *_bands(lines, area, across, up),
            *(
                _named(line, area, across, up, height)
                for line, height in zip(lines, heights, strict=True)
            ),
        ),
    )


def _bands(lines: Iterable[ChartLine], area: Area, across: Axis, up: Axis) -> Iterator[Element]:
    for line in lines:
        pattern = f"pattern-{line.pattern}"
        if line.band:
            yield path("polygon", _places(line.band, area, across, up), f"spread {pattern}")
        if line.marked:
            yield path("polyline", _places(line.marked, area, across, up), f"knee {pattern}")


def _places(values: Places, area: Area, across: Axis, up: Axis) -> Places:
    return [(area.x(across, value), area.y(up, height)) for value, height in values]


def _named(chart_line: ChartLine, area: Area, across: Axis, up: Axis, height: float) -> Element:
    places = _places(chart_line.points, area, across, up)
    end_x, end_y = places[-1]
    return shape(
        "g",
        path("polyline", places, "curve"),
        *(dot(x, y, 2.5, "level") for x, y in places if chart_line.dots),
        line(end_x + 4, end_y, area.right + 8, height, "leader"),
        label(area.right + 11, height + 4.5, chart_line.name, "curve-name"),
        kind=f"pattern-{chart_line.pattern} {chart_line.kind}".strip(),
        title=chart_line.title,
    )


def short_name(name: str) -> str:
    """Return a name that has room next to its line."""
    return name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 1]}…"


def spread(places: Sequence[float], area: Area = AREA) -> list[float]:
    """Return heights of names, near these places and in their order, none on another."""
    order = sorted(range(len(places)), key=lambda index: (places[index], index))
    moved = list(places)
    lowest = area.top
    for index in order:
        moved[index] = max(moved[index], lowest)
        lowest = moved[index] + NAME_HEIGHT
    highest = area.bottom
    for index in reversed(order):
        moved[index] = round(min(moved[index], highest), 1)
        highest = moved[index] - NAME_HEIGHT
    return moved
