"""Two candidates under several loads: in what the second one is slower, and by how much. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from xml.etree.ElementTree import Element, SubElement, tostring

from pydantic import Field

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import COST, CPU, METRICS
from dsharness.model import Boundary, Value
from dsharness.plain_text import plain
from dsresults.number_text import (
    capital,
    counted,
    figure,
    measured_between,
    significant,
    sized,
)
from dsresults.page.chart import Area, Axis, Chart, dot, label, line, log_axis, shape
from dsresults.page.page import UNKNOWN, Card, Content, Page, Section, Table, badge, code, note
from dsresults.page.page_markdown import markdown_of

LABEL_WIDTH = 178.0  # of the names on the left of the chart
LINE_HEIGHT = 22.0


class Word(StrEnum):
    """What is said of a load."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "the same"
    UNKNOWN = "not known"


ORDER = (Word.SLOWER, Word.FASTER, Word.UNKNOWN, Word.SAME)  # as they matter to a reader
KINDS = {Word.SLOWER: "slow", Word.FASTER: "fast", Word.UNKNOWN: "warned", Word.SAME: ""}


class ComparedLoad(Value):
    """Both under one load, by one metric."""

    workload_id: str
    title: str
    metric: str
    boundary: Boundary | None = Field(default=None, description="absent: it was not measured")
    before: float | None = Field(default=None, description="the first one's median")
    after: float | None = Field(default=None, description="that of the second one")
    runs: int = Field(default=0, description="valid ones of the candidate with fewer")
    also: tuple[Boundary, ...] = Field(
        default=(), description="of the same runs by other metrics, where they show a difference"
    )
    why: str = Field(default="", description="why it was not measured")

    @property
    def decider(self) -> Metric:
        return METRICS[self.metric]

    @property
    def word(self) -> Word:
        """What its deciding metric says."""
        if self.boundary is None or self.boundary.direction == "unknown":
            return Word.UNKNOWN
        if self.boundary.direction == "none":
            return Word.SAME
        return Word(self.boundary.direction)

    @property
    def effect(self) -> float:
        """How many times as slow the second one is; 1 where nothing is known."""
        boundary = self.boundary
        if boundary is None or not boundary.effect:
            return 1.0
        return 1 / boundary.effect if boundary.direction == "faster" else boundary.effect

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the effect."""
        boundary = self.boundary
        if boundary is None:
            return None
        if boundary.effect_interval is not None and boundary.found:
            low, high = boundary.effect_interval
            return (1 / high, 1 / low) if boundary.direction == "faster" else (low, high)
        if boundary.smallest_visible_pct is not None:
            seen = 1 + boundary.smallest_visible_pct / 100
            return 1 / seen, seen
        return None

    def slower_beyond(self, margin_pct: float) -> bool:
        """Whether any of its metrics is worse by more than this."""
        slower = [b for b in (self.boundary, *self.also) if b and b.direction == "slower"]
        return any((b.effect or 1.0) > 1 + margin_pct / 100 for b in slower)


class ComparedLoads(Value):
    """Two candidates under every load of a suite."""

    first: str
    second: str
    margin_pct: float = Field(description="what is less is the same")
    loads: tuple[ComparedLoad, ...]
    notes: tuple[str, ...] = Field(default=(), description="of how both were made")
    measured_from: str
    measured_until: str
    next_command: str = Field(default="", description="that says more of the worst load")

    @property
    def inconclusive(self) -> bool:
        """Whether nothing at all is known."""
        return all(load.word is Word.UNKNOWN for load in self.loads)

    @property
    def refused(self) -> bool:
        """Whether the second one is slower by more than the margin under any load."""
        return any(load.slower_beyond(self.margin_pct) for load in self.loads)

    @property
    def worst(self) -> ComparedLoad | None:
        """The load that shows best what is slower; None where nothing is."""
        return next((load for load in self.ranked if load.word is Word.SLOWER), None)

    @property
    def files(self) -> dict[str, str]:
        """What a pull request gets, and what a build server reads; by their names."""
        return {"compare.md": markdown_of(self.page()), "junit.xml": junit_text(self)}

    @property
    def ranked(self) -> tuple[ComparedLoad, ...]:
        """What matters most comes first."""

        def rank(load: ComparedLoad) -> tuple[int, float]:
            return ORDER.index(load.word), -abs(math.log(load.effect))

        return tuple(sorted(self.loads, key=rank))

    def page(self) -> Page:
        headline, *further = compared_sentences(self)
        is_better = any(load.word is Word.FASTER for load in self.loads)
        kind = "slower" if self.refused else "faster" if is_better else ""
        chart = ratio_chart(self.ranked, self.second, self.first)
        again = [Section(title="What to ask next", parts=(code(self.next_command),))]
        return Page(
            title=f"{self.second} against {self.first}",
            heading=(code(self.second), " against ", code(self.first)),
            about=(
                counted(len(self.loads), "load"),
                measured_between(self.measured_from, self.measured_until)
                if self.measured_from
                else "Nothing was measured",
            ),
            answer=[
                Card(headline=headline, kind=kind),
                *(Card(headline=sentence) for sentence in further),
            ],
            parts=(
                *([chart] if chart else []),
                _table(self),
                note(
                    "Both are measured next to each other, load by load, until each load is told. "
                    "All loads together name a difference that is none in one of fifty comparisons "
                    "at most."
                ),
                *map(note, self.notes),
                *(again if self.next_command else []),
            ),
        )


def shown_by(metric: str) -> str:
    """Return the metric in whose unit a reader is shown what each operation takes."""
    return CPU.name if metric == COST.name else metric


def compared_sentences(compared: ComparedLoads) -> tuple[str, ...]:
    """The answer, then what other metrics show."""
    total = len(compared.loads)
    parts: list[str] = []
    for word in ORDER:
        loads = [load for load in compared.ranked if load.word is word]
        if not loads:
            continue
        count = f"{len(loads)} of {total} loads" if not parts else str(len(loads))
        verb = "is" if len(loads) == 1 else "are"
        parts.append(f"{count} {verb} {_said(word, loads, compared.margin_pct)}")
    others = [
        f"under {load.workload_id} it {_with_verb(boundary)}"
        for load in compared.ranked
        for boundary in load.also
    ]
    first = f"{compared.second} against {compared.first}: {'; '.join(parts)}"
    return (first, *([capital("; ".join(others))] if others else []))


def _with_verb(boundary: Boundary) -> str:
    words = METRICS[boundary.metric].words
    said = sized(words, boundary).rstrip(",")
    return said if words.verb else f"is {said}"


def _said(word: Word, loads: Sequence[ComparedLoad], margin_pct: float) -> str:
    names = ", ".join(
        f"{load.workload_id} {factor_text(load)}"
        if word in {Word.SLOWER, Word.FASTER}
        else load.workload_id
        for load in loads
    )
    if word is Word.SAME:
        return f"the same within {_seen(loads, margin_pct):.2g} %"
    return f"{word}: {names}"


def _seen(loads: Iterable[ComparedLoad], margin_pct: float) -> float:
    """What would have been seen of each of these, as a percentage."""
    visible = [load.boundary.smallest_visible_pct for load in loads if load.boundary]
    return max((pct for pct in visible if pct is not None), default=margin_pct)


def factor_text(load: ComparedLoad) -> str:
    """``2.08 times (1.95 to 2.22)``, in the load's own direction."""
    boundary = load.boundary
    if boundary is None or boundary.effect is None:
        return ""
    if load.decider.words.verb or boundary.counts:
        return sized(load.decider.words, boundary).rstrip(",")
    interval = ""
    if boundary.effect_interval:
        interval = f" ({' to '.join(map(significant, boundary.effect_interval))})"
    return f"{significant(boundary.effect)} times{interval}"


def _table(compared: ComparedLoads) -> Table:
    return Table(
        kind="compared",
        caption="Every load, what matters most first",
        columns=("load", "what it does", "answer", "by", compared.first, compared.second, "runs"),
        rows=[
            (
                code(load.workload_id),
                load.title,
                _answer(load, compared.margin_pct),
                load.decider.label,
                _value(load, load.before),
                _value(load, load.after),
                str(load.runs),
            )
            for load in compared.ranked
        ],
    )


def _answer(load: ComparedLoad, margin_pct: float) -> Content:
    return (badge(load.word.value, KINDS[load.word]), told_of(load, margin_pct))


def told_of(load: ComparedLoad, margin_pct: float) -> str:
    """Return what follows the word of a load: within how much, by how much, or why not."""
    match load.word:
        case Word.SAME:
            return f" within {_seen([load], margin_pct):.2g} %"
        case Word.UNKNOWN:
            summary = load.boundary.summary if load.boundary else load.why
            return f": {summary}" if summary else ""
        case _:
            return f" {factor_text(load)}"


def _value(load: ComparedLoad, value: float | None) -> str:
    return UNKNOWN if value is None else figure(METRICS[shown_by(load.metric)], value)


def junit_text(compared: ComparedLoads) -> str:
    """Return each load as a test: it fails where it is slower by more than the margin."""
    loads = compared.ranked
    failed = [load for load in loads if load.slower_beyond(compared.margin_pct)]
    skipped = [load for load in loads if load.word is Word.UNKNOWN]
    suite = Element("testsuite", name=f"{compared.second} against {compared.first}")
    counts = (("tests", loads), ("failures", failed), ("skipped", skipped))
    suite.attrib.update((name, str(len(counted_loads))) for name, counted_loads in counts)
    for load in loads:
        case = SubElement(
            suite, "testcase", name=f"{load.workload_id} by {load.metric}", classname="compare"
        )
        if load in failed:
            SubElement(case, "failure", message=plain(_in_words(load)))
        elif load in skipped:
            SubElement(case, "skipped", message=plain(load.why or "not known"))
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def ratio_chart(loads: Sequence[ComparedLoad], second: str, first: str) -> Chart | None:
    """Draw each load's factor with its interval; None where nothing is known."""
    intervals = [interval for load in loads if (interval := load.interval)]
    if not intervals:
        return None
    ends = [end for interval in intervals for end in interval]
    axis = log_axis([*ends, 1.0], lambda value: f"{value:g}")
    area = Area(
        width=640.0,
        left=LABEL_WIDTH,
        right=620.0,
        top=8.0,
        bottom=8.0 + LINE_HEIGHT * len(loads),
        height=LINE_HEIGHT * len(loads) + 58.0,
    )
    named = Axis(
        low=axis.low, high=axis.high, marks=axis.marks, bend=axis.bend,
        title=f"times the cost under {first} (right of 1: {second} is slower)",
    )  # fmt: skip
    one = area.x(named, 1.0)
    return Chart(
        title=f"{second} against {first}, load by load",
        description="; ".join(f"{load.workload_id}: {_in_words(load)}" for load in loads),
        caption="Dots are the factors, bars their intervals; where there is no difference, the bar "
        "is what could not have been seen.",
        width=area.width,
        height=area.height,
        kind="ratios",
        shapes=(
            *area.across(named),
            line(one, area.top, one, area.bottom, "axis"),
            *(_drawn(load, number, area, named) for number, load in enumerate(loads)),
        ),
    )


def _in_words(load: ComparedLoad) -> str:
    return f"{load.word.value} {factor_text(load)}".strip()


def _drawn(load: ComparedLoad, number: int, area: Area, axis: Axis) -> Element:
    y = area.top + LINE_HEIGHT * (number + 0.5)
    interval = load.interval
    parts = [label(area.left - 8, y + 4.5, load.workload_id, "tick", "end")]
    if interval is not None:
        low, high = (area.x(axis, end) for end in interval)
        parts.append(line(low, y, max(high, low + 1), y, f"interval {KINDS[load.word]}"))
    if load.word in {Word.SLOWER, Word.FASTER}:
        parts.append(dot(area.x(axis, load.effect), y, 5, f"mark {KINDS[load.word]}"))
    return shape("g", *parts, title=f"{load.workload_id}: {_in_words(load)}")
