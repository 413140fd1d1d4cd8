"""The picture that carries an answer, as geometry; `answer_chart` draws it.

Candidates stand in order from left to right, each with its value, its interval and its single
samples; below, on the same axis, stands the chance that the change is at it. Of a long line only
what was measured and what is near the boundary is drawn, and what is left out is counted.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dsharness.measure.metric import Metric, Words
from dsharness.measure.metrics import COST, CPU
from dsharness.model import Boundary, CostStep, Outcome, Sample, Value
from dsresults.compare.comparison_table import Column, ComparisonTable
from dsresults.number_text import capital, chance_text, figure, second_steps
from dsresults.page.chart import Area, Axis, round_values

MOST_SHOWN = 22  # candidates that have room for a name
WHOLE_LINE = 12  # a line of so many is drawn completely
LIKELY = 0.01  # a chance that is drawn although nothing was measured there
SHORT = 24  # letters of a name in a line
LETTER = 8.2  # the width of one, at most
ROOM_FOR_VALUE = 62.0


@dataclass(frozen=True, kw_only=True)
class PictureArea(Area):
    """Where things are drawn: values above, chances below, names at the foot."""

    width: float = 520.0
    left: float = 58.0
    right: float = 472.0  # further right are factors
    top: float = 74.0
    bottom: float = 256.0
    chance_top: float = 310.0
    chance_bottom: float = 360.0


AREA = PictureArea()


class Dot(Value):
    """A single sample."""

    y: float
    title: str


class Place(Value):
    """One candidate, or a gap that stands for several, in drawing units."""

    x: float
    name: str
    version: str = ""
    candidate: str = ""
    left_out: int = 0
    outcome: Outcome = Outcome.INCONCLUSIVE
    y: float | None = None
    low: float | None = None
    high: float | None = None
    dots: tuple[Dot, ...] = ()
    label: str = ""
    label_side: str = "middle"
    chance: float = 0.0
    bar_y: float = AREA.chance_bottom
    title: str = ""

    @property
    def whole_name(self) -> str:
        return f"{self.name} {self.version}".rstrip()

    @property
    def highest(self) -> float:
        """Where the highest dot is drawn."""
        return min(dot.y for dot in self.dots)

    @property
    def bar_height(self) -> float:
        return round(AREA.chance_bottom - self.bar_y, 1)


class Edge(Value):
    """Where it changes: between two candidates, or a band over all that may be the first."""

    x: float
    end_x: float  # differs where several candidates are suspected
    label: str
    label_side: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One workload's answer."""

    workload_id: str
    title: str
    description: str
    axis: Axis
    places: tuple[Place, ...]
    slot: float
    reference: str = ""
    factors: tuple[tuple[float, str], ...] = ()  # heights, and so many times the reference
    edge: Edge | None = None
    second_edges: tuple[Edge, ...] = ()  # of other likely steps
    believed: bool = False

    @property
    def slanted(self) -> bool:
        """Whether names are too long for their places."""
        return any(
            max(len(place.name), len(place.version)) * LETTER > self.slot for place in self.places
        )

    @property
    def foot(self) -> float:
        """Where the last axis is."""
        return AREA.chance_bottom if self.believed else AREA.bottom

    @property
    def height(self) -> float:
        longest = max((len(place.whole_name) for place in self.places), default=0)
        below = 43 if any(place.version for place in self.places) else 26
        return round(self.foot + (20 + longest * LETTER * 0.72 if self.slanted else below), 1)


def pictures(comparison: ComparisonTable, samples: Sequence[Sample]) -> tuple[Picture, ...]:
    """One for each workload, all with the same axis so that they can be compared."""
    ours = {
        column.campaign_id: [s for s in samples if s.campaign_id == column.campaign_id and s.valid]
        for column in comparison.columns
    }
    unit = _axis_unit(comparison.decider, [s for group in ours.values() for s in group])
    if unit is None:
        return ()
    values: dict[str, dict[str, list[Reading]]] = {}
    for campaign, group in ours.items():
        of = values.setdefault(campaign, {})
        for sample in group:
            if value := sample.value(comparison.metric):
                reading = Reading(value=value * unit.factor, turn=sample.turn)
                of.setdefault(sample.candidate_id, []).append(reading)
    known = [one.value for of in values.values() for group in of.values() for one in group]
    if not known or min(known) <= 0:
        return ()
    low, high = min(known) / 1.5, max(known) * 1.5
    marks = {value: _mark_words(value, unit.shown) for value in round_values(low, high)}
    scale = Scale(axis=Axis(low=low, high=high, marks=marks, bend=math.log), shown=unit.shown)
    return tuple(
        _picture(comparison, column, values[column.campaign_id], scale)
        for column in comparison.columns
    )


def _mark_words(value: float, shown: Metric) -> str:
    if shown.unit == "µs":
        return f"{value / 1000:g} ms"
    return f"{value:g}/s" if shown.unit == "1/s" else f"{value:g}"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Values on the log axis, the largest at the top."""

    axis: Axis
    shown: Metric

    def factors(self, base: float) -> tuple[tuple[float, str], ...]:
        """Heights of what is so many times slower than a value; none where counts are compared."""
        if self.shown.floor is not None:
            return ()
        low, high = self.axis.low / base, self.axis.high / base
        least, most = (low, high) if self.shown.smaller_is_better else (1 / high, 1 / low)
        return tuple(
            (self.y(self.shown.at_slowness(base, factor)), f"{factor:g}×")  # noqa: RUF001
            for factor in round_values(least, most)
        )

    def y(self, value: float) -> float:
        return AREA.y(self.axis, min(max(value, self.axis.low), self.axis.high))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One sample's value, as it is drawn."""

    value: float
    turn: int


@dataclass(frozen=True, kw_only=True)
class AxisUnit:
    """How values are shown: in which metric's unit, and times what."""

    shown: Metric
    factor: float = 1.0


def _axis_unit(decider: Metric, samples: Sequence[Sample]) -> AxisUnit | None:
    """Calibrated cost is shown as time at this machine's usual speed, if that is known."""
    if decider is not COST:
        return AxisUnit(shown=decider)
    speeds = [sample.calibrator_us for sample in samples if sample.calibrator_us]
    return AxisUnit(shown=CPU, factor=statistics.median(speeds)) if speeds else None


def _picture(
    comparison: ComparisonTable,
    column: Column,
    values: Mapping[str, list[Reading]],
    scale: Scale,
) -> Picture:
    found = column.boundary
    first = [reading.value for reading in values.get(column.reference or "", ())]
    whole = found.line if found and found.line else comparison.line
    shown = drawn_of(whole, set(values), found)
    slot = (AREA.right - AREA.left) / len(shown)
    middles = [round(AREA.left + slot * (at + 0.5), 1) for at in range(len(shown))]
    chances = (found.step_chances or found.chances) if found else {}
    sides = {found.before: "end", found.after: "start"} if found and found.found else {}
    places = tuple(
        _gap(each, x, chances)
        if isinstance(each, tuple)
        else _place(comparison, column, values, scale, each).model_copy(
            update={
                "x": x,
                "label_side": "middle" if slot >= ROOM_FOR_VALUE else sides.get(each, ""),
                **_chance(chances.get(each, 0.0)),
            }
        )
        for each, x in zip(shown, middles, strict=True)
    )
    words = comparison.decider.words
    return Picture(
        workload_id=column.workload_id,
        title=f"{capital(scale.shown.title)}, {column.workload_id}",
        description="; ".join(place.title for place in places),
        axis=scale.axis,
        places=places,
        slot=round(slot, 1),
        reference=(column.reference or "")[:SHORT],
        factors=scale.factors(statistics.geometric_mean(first)) if first else (),
        edge=_edge(places, slot, found, words.said(found.direction))
        if found and found.found
        else None,
        second_edges=tuple(_second_edges(places, slot, found, words)) if found else (),
        believed=bool(chances),
    )


Drawn = str | tuple[str, ...]  # a candidate, or those of a gap


def drawn_of(line: Sequence[str], measured: set[str], found: Boundary | None) -> tuple[Drawn, ...]:
    """What has a place of its own, in order; between them what has none."""
    kept = set(line) if len(line) <= WHOLE_LINE else _kept(line, measured, found)
    drawn: list[Drawn] = []
    left_out: list[str] = []
    for each in line:
        if each not in kept:
            left_out.append(each)
            continue
        if left_out:
            drawn.append(tuple(left_out))
        left_out = []
        drawn.append(each)
    return tuple([*drawn, tuple(left_out)] if left_out else drawn)


def _kept(line: Sequence[str], measured: set[str], found: Boundary | None) -> set[str]:
    """The most telling ones: ends, the boundary and its neighbours, likely ones, measured ones."""
    index = {name: at for at, name in enumerate(line)}
    chances = found.step_chances or found.chances if found else {}
    sides = [name for name in (found.before, found.after) if name in index] if found else []
    near = [
        line[at]
        for side in sides
        for at in (index[side] - 1, index[side] + 1)
        if 0 <= at < len(line)
    ]
    likely = sorted((n for n in chances if chances[n] >= LIKELY), key=lambda n: -chances[n])
    centre = index[sides[-1]] if sides else len(line) // 2
    others = sorted(measured & set(index), key=lambda name: abs(index[name] - centre))
    order = dict.fromkeys([line[0], line[-1], *sides, *near, *likely, *others])
    return set(list(order)[:MOST_SHOWN])


def _gap(names: tuple[str, ...], x: float, chances: Mapping[str, float]) -> Place:
    chance = math.fsum(chances.get(name, 0.0) for name in names)
    title = f"{len(names)} more were not needed"
    told = f"{title}, chance {chance_text(chance)}" if chance >= LIKELY else title
    name = f"+{len(names)}"
    place = Place(x=x, name=name, left_out=len(names), title=told)
    return place.model_copy(update=_chance(chance))


def _chance(chance: float) -> dict[str, float]:
    height = (AREA.chance_bottom - AREA.chance_top) * min(1.0, chance)
    return {"chance": chance, "bar_y": round(AREA.chance_bottom - height, 1)}


def _place(
    comparison: ComparisonTable,
    column: Column,
    values: Mapping[str, list[Reading]],
    scale: Scale,
    candidate: str,
) -> Place:
    readings, observed = values.get(candidate, []), column.observed_of(candidate)
    dots = [each.value for each in readings]
    reference = [each.value for each in values.get(column.reference or "", ())]
    shown, ratio = scale.shown, observed.ratios.get(comparison.metric)
    words = figure(shown, statistics.geometric_mean(dots)) if dots else "not measured"
    facts: dict[str, object] = {}
    if dots and ratio is not None and reference:
        base = statistics.geometric_mean(reference)
        value = shown.at_slowness(base, ratio.value)
        ends = [shown.at_slowness(base, end) for end in ratio.interval or ()] or [value]
        words = figure(shown, value)
        facts = {"y": scale.y(value), "low": scale.y(min(ends)), "high": scale.y(max(ends))}
    word = column.verdict_word(observed)
    name = candidate[:8] if _is_hash(candidate) else candidate
    release = comparison.candidate(candidate).release
    return Place(
        x=0.0,
        name=name,
        version="" if release in name else release,
        candidate=candidate,
        outcome=observed.outcome,
        dots=tuple(
            Dot(y=scale.y(each.value), title=f"turn {each.turn}: {figure(shown, each.value)}")
            for each in readings
        ),
        label=words if dots else "",
        title=f"{candidate}: {', '.join(dict.fromkeys((word, words)))}",
    ).model_copy(update=facts)


def _is_hash(name: str) -> bool:
    return len(name) >= 12 and not name.strip("0123456789abcdef")


def _second_edges(
    places: Sequence[Place], slot: float, found: Boundary, words: Words
) -> Iterator[Edge]:
    for step, step_words in second_steps(words, found):
        if edge := _edge(places, slot, step, step_words.rpartition(": ")[2]):
            yield edge


def _edge(
    places: Sequence[Place], slot: float, step: Boundary | CostStep, said: str
) -> Edge | None:
    at = {place.candidate: place.x for place in places}
    if step.before not in at or step.after not in at:
        return None
    x, end_x = at[step.before] + slot / 2, at[step.after] - slot / 2
    end_x = x if end_x - x < 1 else end_x
    where = "from here on" if end_x == x else "from somewhere here on"
    right = (x + end_x) / 2 <= (AREA.left + AREA.right) / 2
    return Edge(
        x=round(x, 1),
        end_x=round(end_x, 1),
        label=f"{said} {where}",
        label_side="start" if right else "end",
    )
