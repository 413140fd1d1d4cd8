"""Profiles and times of both sides of a step, what differs between them, and flame graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from xml.etree.ElementTree import Element

from pydantic import Field, computed_field

from dsharness.model import (
    CpuProfile,
    Finding,
    FunctionCounts,
    HeapGrowth,
    ServerTimes,
    ThreadWaits,
    ToolRuns,
    Value,
)
from dsharness.model.measured import Frames, path_totals
from dsresults.number_text import significant
from dsresults.page.chart import Chart, box, label, shape
from dsresults.store import Store
from dsresults.stored_value import values_of
from dsresults.times_table import NotesRow, TimesRow, notes_rows, times_rows
from dsresults.tool_steps import ToolStep

MOST_CHANGES = 10
PLACES_APART, PLACE_SHOWN = " ← ", 8
CPU_CAPTION = (
    "The functions whose own CPU time per operation, without what they call, changed most. From "
    "runs of their own while perf looked: they show where time goes, and decide nothing."
)
HEAP_CAPTION = (
    "Memory that stays after each operation, by the function that allocated it and its callers, "
    "where it changed most. By massif, in a run of its own."
)
WAITS_CAPTION = (
    "How often an operation lets a thread wait, by the thread's name and the function that waits "
    "with its callers, where it changed most. By perf, in a run of its own."
)
COUNTS_CAPTION = (
    "The functions whose own instructions per operation, without what they call, changed most. "
    "Counted by callgrind in a run of its own."
)


class FunctionChange(Value):
    """What an operation takes in a function itself, without what it calls, on both sides."""

    function: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


class ProfilePair(Value):
    """Both sides of one campaign's answer; a side that could not be profiled says why."""

    campaign_id: str
    workload_id: str
    names: tuple[str, str] = Field(description="the candidates, in the order of the line")
    before: CpuProfile | None = None
    after: CpuProfile | None = None
    note: str = Field(default="", description="why a side has no profile")
    times: tuple[ServerTimes, ...] = Field(
        default=(), description="of both sides by the server's own log, where it can write one"
    )
    times_note: str = Field(default="", description="why there are none")
    counts: tuple[FunctionCounts, ...] = Field(
        default=(), description="of both sides under callgrind, where instructions were counted"
    )
    counts_note: str = Field(default="", description="why there are none")
    heap: tuple[HeapGrowth, ...] = Field(
        default=(), description="of both sides, where memory decided"
    )
    heap_note: str = Field(default="", description="why there is none")
    waits: tuple[ThreadWaits, ...] = Field(
        default=(), description="of both sides, where switches or futexes decided"
    )
    waits_note: str = Field(default="", description="why there are none")
    tools: tuple[ToolRuns, ...] = Field(
        default=(), description="of both sides, where another tool can make the same load"
    )
    tools_note: str = Field(default="", description="why there are none")

    @computed_field(description="functions whose own CPU time per operation changed most")
    def changes(self) -> tuple[FunctionChange, ...]:
        return function_changes(self)

    @computed_field(description="functions whose own instructions per operation changed most")
    def count_changes(self) -> tuple[FunctionChange, ...]:
        return count_changes(self)

    @computed_field(description="what the log says of both sides, percentiles 50 and 99")
    def times_rows(self) -> tuple[TimesRow, ...]:
        return times_rows(self.times)

    @computed_field(description="what the other tool says of the step")
    def tool_step(self) -> ToolStep | None:
        return ToolStep.of(self.tools)

    @computed_field(description="the server's own remarks")
    def notes_rows(self) -> tuple[NotesRow, ...]:
        return notes_rows(self.times)

    @property
    def whole(self) -> bool:
        """Whether nothing went wrong that another try could better."""
        return not self.notes

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong."""
        apart = (self.counts_note, self.heap_note, self.waits_note, self.tools_note)
        return tuple(note for note in (self.note, self.times_note, *apart) if note)

    @property
    def excerpts(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """The log's own lines of some operations: whose, of what, the lines."""
        return tuple(
            (times_of_side.candidate_id, f"{kind}, {which_one}", lines)
            for times_of_side in self.times
            for kind, times in times_of_side.kinds.items()
            for which_one, lines in (
                ("in the middle", times.middle),
                ("the slowest", times.slowest),
            )
        )

    @property
    def finding(self) -> Finding:
        """It, for the store."""
        sides = [f"{p.cpu_us_per_op:,.0f} µs" for p in (self.before, self.after) if p]
        return Finding.now(
            "profile",
            self,
            title=f"profiles of {' and '.join(self.names)} with {self.workload_id}",
            answer=self.note or f"CPU time per operation: {', then '.join(sides)}",
            campaigns=(self.campaign_id,),
        )


def function_changes(pair: ProfilePair) -> tuple[FunctionChange, ...]:
    """Return the functions whose own CPU time changed most, in which direction ever."""
    if pair.before is None or pair.after is None:
        return ()
    return _most_changed(own_us(pair.before), own_us(pair.after))


def count_changes(pair: ProfilePair) -> tuple[FunctionChange, ...]:
    """Return the same of instructions."""
    return _changed(pair.counts, lambda side: side.per_operation)


def heap_changes(pair: ProfilePair) -> tuple[FunctionChange, ...]:
    """Return the places where the memory that stays changed most."""
    return _changed(
        pair.heap,
        lambda side: _summed(
            (_told(growth.place), growth.bytes_per_operation) for growth in side.stays
        ),
    )


def wait_changes(pair: ProfilePair) -> tuple[FunctionChange, ...]:
    """Return the places where waiting changed most, by thread."""
    return _changed(
        pair.waits,
        lambda side: _summed(
            (f"{wait.thread}: {_told(wait.place)}", wait.per_operation) for wait in side.waits
        ),
    )


Side = TypeVar("Side")


def _changed(
    sides: Sequence[Side], figures: Callable[[Side], Mapping[str, float]]
) -> tuple[FunctionChange, ...]:
    """Nothing where a side is missing."""
    return _most_changed(*map(figures, sides)) if len(sides) > 1 else ()


def _told(place: tuple[str, ...]) -> str:
    """With as many callers as there is room for."""
    return PLACES_APART.join(place[:PLACE_SHOWN])


def _summed(places: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """Places that have no room for all of their callers may be one."""
    amounts: dict[str, float] = defaultdict(float)
    for place, amount in places:
        amounts[place] += amount
    return amounts


def _most_changed(
    first: Mapping[str, float], second: Mapping[str, float]
) -> tuple[FunctionChange, ...]:
    changes = (
        FunctionChange(function=name, before=first.get(name, 0.0), after=second.get(name, 0.0))
        for name in sorted(first.keys() | second.keys())
    )
    return tuple(sorted(changes, key=lambda change: -abs(change.change))[:MOST_CHANGES])


def changed_functions(pair: ProfilePair) -> tuple[tuple[str, str, tuple[FunctionChange, ...]], ...]:
    """Return the tables of functions that there are: what it has, its unit, its rows."""
    tables = (
        (CPU_CAPTION, "µs", function_changes(pair)),
        (COUNTS_CAPTION, "instructions", count_changes(pair)),
        (HEAP_CAPTION, "bytes", heap_changes(pair)),
        (WAITS_CAPTION, "times", wait_changes(pair)),
    )
    return tuple(table for table in tables if table[2])


def own_us(profile: CpuProfile) -> Mapping[str, float]:
    """The CPU time of an operation in each function itself."""
    own: dict[str, float] = defaultdict(float)
    for frames, time_us in profile.us_per_op().items():
        own[frames[-1]] += time_us
    return own


def profiles_of(findings: Iterable[Finding], campaigns: Iterable[str]) -> tuple[ProfilePair, ...]:
    """Those that were stored for these campaigns."""
    wanted_ids = set(campaigns)
    return tuple(
        values_of(
            ProfilePair,
            (
                times_of_side
                for times_of_side in findings
                if times_of_side.kind == "profile"
                and wanted_ids.issuperset(times_of_side.campaigns)
            ),
        )
    )


def stored_profiles(store: Store, campaigns: Iterable[str]) -> tuple[ProfilePair, ...]:
    """Those of these campaigns, without reading what else is stored of profiles."""
    names = tuple(campaigns)
    return profiles_of(store.findings_on("profile", names), names)


def doubted(pairs: Iterable[ProfilePair]) -> tuple[str, ...]:
    """What makes an answer not sure: another tool saw another step, or none."""
    steps = ((pair.workload_id, ToolStep.of(pair.tools)) for pair in pairs)
    return tuple(f"{load}: {step.text}" for load, step in steps if step and not step.agree)


FLAME_WIDTH, LEVEL = 1000.0, 18.0
NARROWEST = 1.0  # what is narrower nobody could point at
LETTER = 6.6  # wide
SHORTEST = 4  # letters of a name that are worth showing
SHADES = (0.005, 0.05, 0.2)  # a change of this share of the whole operation, or more


class Flame(Value):
    """One frame: a function in a path of calls."""

    x: float
    y: float
    width: float
    label: str
    title: str
    shade: str = ""


class FlameGraph(Value):
    """All frames of one profile."""

    title: str
    description: str
    height: float
    flames: tuple[Flame, ...]

    @property
    def chart(self) -> Chart:
        return Chart(
            title=self.title,
            description=self.description,
            width=FLAME_WIDTH,
            height=self.height,
            kind="wide",
            shapes=[_frame(flame) for flame in self.flames],
        )


def _frame(flame: Flame) -> Element:
    name = [label(flame.x + 3, flame.y + 12.5, flame.label, "")] if flame.label else []
    frame = box(flame.x, flame.y, flame.width, LEVEL - 1, f"flame {flame.shade}".strip())
    return shape("g", frame, *name, title=flame.title)


def flame_graphs(pair: ProfilePair) -> tuple[FlameGraph, ...]:
    """Each side's, then that of the slower side with its changes."""
    before, after = pair.before, pair.after
    graphs = [
        flame_graph(profile, f"{profile.candidate_id}, {pair.workload_id}")
        for profile in (before, after)
        if profile is not None
    ]
    if before is not None and after is not None:
        wide = after if after.cpu_us_per_op >= before.cpu_us_per_op else before
        title = f"What changed from {before.candidate_id} to {after.candidate_id}"
        changed = changes_of(before, after)
        graphs.append(flame_graph(wide, f"{title}, drawn on {wide.candidate_id}", changed))
    return tuple(graphs)


def changes_of(before: CpuProfile, after: CpuProfile) -> Mapping[Frames, float]:
    """By how much the CPU time of each path changed."""
    first, second = (path_totals(profile.us_per_op()) for profile in (before, after))
    return {
        path: second.get(path, 0.0) - first.get(path, 0.0) for path in first.keys() | second.keys()
    }


def flame_graph(
    profile: CpuProfile, title: str, changed: Mapping[Frames, float] | None = None
) -> FlameGraph:
    """Frames in the order of their names, so that two graphs have them in the same order."""
    within = path_totals(profile.us_per_op())
    total = within[()]
    scale = FLAME_WIDTH / total if total else 0.0
    next_x: dict[Frames, float] = {}
    flames: list[Flame] = []
    for path in sorted(within):  # a caller comes before what it calls
        x = next_x.get(path[:-1], 0.0)
        width = within[path] * scale
        if path:
            next_x[path[:-1]] = x + width
        next_x[path] = x
        if width >= NARROWEST:
            change = None if changed is None else changed.get(path, 0.0)
            flames.append(_flame(path, within[path], total, x, width, change))
    most = sorted((path for path in within if path), key=lambda path: -within[path])
    largest = ", ".join(dict.fromkeys(path[-1] for path in most[:40]))
    cpu = significant(total)
    return FlameGraph(
        title=f"{title}: {cpu} µs of CPU time per operation",
        description=f"{profile.seen} stacks; most time is in {largest}",
        height=max((flame.y for flame in flames), default=0.0) + LEVEL,
        flames=tuple(flames),
    )


def _flame(
    path: Frames, time_us: float, total: float, x: float, width: float, change: float | None
) -> Flame:
    name = path[-1] if path else "all"
    change_text = ""
    if change is not None:
        change_text = (
            f"; {significant(abs(change))} µs {'more' if change >= 0 else 'less'} than before"
        )
    letters = int((width - 4) / LETTER)
    return Flame(
        x=round(x, 2),
        y=len(path) * LEVEL,
        width=round(width, 2),
        label=_label(name, letters),
        title=f"{name}: {significant(time_us)} µs per operation, {100 * time_us / total:.1f} %"
        f"{change_text}",
        shade="" if change is None else shade(change / total),
    )


def _label(name: str, letters: int) -> str:
    if letters < SHORTEST:
        return ""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def shade(change: float) -> str:
    """The class of a change that is such a share of the whole: ``more-1`` to ``less-3``."""
    level = sum(abs(change) >= least for least in SHADES)
    return f"{'more' if change > 0 else 'less'}-{level}" if level else "same"
