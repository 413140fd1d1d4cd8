"""The proof of an answer: clean builds side by side, and what happens without a culprit's change.

parent          against  culprit             both built from nothing; if the step is small, each
                                             in several layouts of its code
the bad end     against  bad end - culprit   does it get fast again?
the good end    against  good end + culprit  does it get slow?

the good end    against  the bad end         each in several layouts, where the search cannot say
                                             "no difference" because builds differ by themselves
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from dsbisect.commits.commit_candidates import Sources
from dsbuilds.history.counterfactual import Counterfactual
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import CandidateError, EditError, InconclusiveError, SourceError
from dsharness.model import DECIDER, NO_DIFFERENCE, Boundary, Provenance
from dslab.campaign_loop import Together, asked_in_turn
from dsresults.commits_result import Comparison
from dssearch.bayes.belief import Certainty
from dssearch.build_scatter import PooledStep

Compare = Callable[[str, str], Boundary]  # (before, after), both candidates of the supply
Prepare = Callable[[Sequence[str]], None]  # builds at the same time what is compared later


@dataclass(frozen=True, kw_only=True)
class Case:
    """A culprit with its parent and both ends, as sources."""

    culprit: str  # candidate ids
    parent: str
    good: str
    bad: str
    direction: str  # "slower" or "faster": what the culprit did
    trees: dict[str, Tree]
    # The culprit's change on a tree, in every way that there is; True removes it.
    changed: Callable[[Tree, bool], Iterator[Counterfactual]]
    first: str = "the good end"  # what ``good`` and ``bad`` are called
    last: str = "the bad end"


@dataclass(frozen=True, kw_only=True)
class SeveralBuilds:
    """How to compare two sources by several builds of each: one of them could mislead."""

    number: int  # of each
    step: float  # the log of what the search found, above 0 for slower
    metric: str = DECIDER
    measure: Callable[[tuple[str, ...], tuple[str, ...]], PooledStep]


def prove(
    case: Case,
    supply: Sources,
    compare: Compare,
    prepare: Prepare,
    several: SeveralBuilds | None = None,
    together: Together = asked_in_turn,
) -> tuple[Comparison, ...]:
    """Every comparison that can be made; one that cannot says why. None needs another's result."""
    swaps = (
        _Swap(
            case=case,
            supply=supply,
            title=f"{case.last} without the culprit",
            onto=case.bad,
            reverse=True,
        ),
        _Swap(
            case=case,
            supply=supply,
            title=f"{case.first} with the culprit",
            onto=case.good,
            reverse=False,
        ),
    )
    first = [name for swap in swaps for name in swap.begin()]
    if several is None:
        before, after = (
            supply.add(f"{name}-clean", case.trees[name], clean=True)
            for name in (case.parent, case.culprit)
        )
        prepare((before, after, *first))
        title = "the culprit against its parent, both built from nothing"
        built = partial(judged, title, before, after, supply, compare, expected=case.direction)
    else:
        prepare(first)
        title = "the culprit against its parent, {} layouts of each, built from nothing"
        built = partial(
            _layouts, case.parent, case.culprit, case.trees, supply, several, title=title
        )
    return together((built, *(partial(swap.compared, compare) for swap in swaps)))


def compare_ends(
    ends: tuple[str, str], trees: Mapping[str, Tree], supply: Sources, several: SeveralBuilds
) -> Comparison:
    """Both ends of a line in several layouts, which tells whether one costs more."""
    title = "the last end against the first, {} layouts of each, built from nothing"
    comparison = _layouts(*ends, trees, supply, several, title=title)
    is_known = comparison.outcome in {"slower", "faster", "none"}
    return comparison.model_copy(
        update={"confirms": comparison.outcome == "none" if is_known else None}
    )


def equal_ends(boundary: Boundary, ends: Comparison, level: float) -> Boundary:
    """An answer that was left open because builds differ, with what several of each end say.

    Where they agree, a step is left if the search had one left and their interval misses it too.
    """
    if ends.outcome != "none" or ends.interval is None or boundary.confidence is None:
        return boundary
    step = boundary.confidence / level
    step_left = step * (1 - level)
    none = 1 - step
    chance = none / (none + step_left)
    if chance < Certainty.none:
        return boundary
    least = max(abs(math.log(side)) for side in ends.interval)
    visible = 100 * math.expm1(least)
    summary = (
        f"{NO_DIFFERENCE} of {math.ceil(visible)} % or more found between {boundary.line[0]} and "
        f"{boundary.line[-1]} with "
        f"{boundary.workload_id} (chance {chance:.1%}): the search left {step:.1%} to a step, and "
        f"{ends.title.removeprefix('the last end against the first, ')}, differ by no more than "
        "by themselves"
    )
    return boundary.model_copy(
        update={
            "direction": "none",
            "shape": "ends",
            "effect": 1.0,
            "suspects": (),
            "chances": {},
            "step_chances": {},
            "smallest_visible_pct": visible,
            "confidence": chance,
            "summary": summary,
        }
    )


def _layouts(
    first: str,
    second: str,
    trees: Mapping[str, Tree],
    supply: Sources,
    several: SeveralBuilds,
    *,
    title: str,
) -> Comparison:
    """Two sources, each in several layouts of its own clean build."""
    names = tuple(
        supply.add_layouts(f"{name}-clean", trees[name], several.number, clean=True)
        for name in (first, second)
    )
    title = title.format(several.number)
    before, after = (side[0] for side in names)
    try:
        step = several.measure(*names)
    except (CandidateError, InconclusiveError) as error:
        return Comparison(
            title=title,
            before=before,
            after=after,
            outcome="unknown",
            note=error.message.splitlines()[0],
        )
    return pooled(
        step,
        several.step,
        title=title,
        before=before,
        after=after,
        metric=several.metric,
        builds=tuple(
            supply.origins[name] for side in names for name in side if name in supply.origins
        ),
    )


def pooled(
    step: PooledStep,
    found_step: float,
    *,
    title: str,
    before: str,
    after: str,
    builds: tuple[Provenance, ...] = (),
    metric: str = DECIDER,
) -> Comparison:
    """What several builds of each side say of the step that the search found.

    Where they may also be equal, that contradicts it only if it is too large for them.
    """
    slower = step.size > 0
    sides = (step.low, step.high) if slower else (-step.high, -step.low)
    low, high = (math.exp(side) for side in sides)
    confirms = (
        (slower == (found_step > 0)) if step.differs else None if step.allows(found_step) else False
    )
    by_themselves = (
        f"within what builds of one source differ by themselves: "
        f"{100 * math.expm1(step.low):+.1f} to {100 * math.expm1(step.high):+.1f} %"
    )
    return Comparison(
        title=title,
        before=before,
        after=after,
        outcome=("slower" if slower else "faster") if step.differs else "none",
        effect=math.exp(abs(step.size)),
        interval=(low, high),
        note="" if step.differs else by_themselves,
        confirms=confirms,
        builds=builds,
        metric=metric,
    )


@dataclass(kw_only=True)
class _Swap:
    """An end against the same with the other side's code, made in the first way that builds."""

    case: Case
    supply: Sources
    title: str
    onto: str
    reverse: bool
    _ways: Iterator[Counterfactual] = field(init=False)
    _first: Counterfactual | None = field(init=False, default=None)
    _refused: SourceError | EditError | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._ways = self.case.changed(self._end, self.reverse)
        try:
            self._first = next(self._ways, None)
        except (SourceError, EditError) as error:
            self._refused = error

    def begin(self) -> tuple[str, ...]:
        """Add the candidate of the first way to the supply, if there is one that can be built."""
        if self._first is None or self._first.tree.id == self._end.id:
            return ()
        self.supply.add(self._after, self._first.tree)
        return (self._after,)

    def compared(self, compare: Compare) -> Comparison:
        """What changed with the code; why not, where no way was found."""
        impossible = Comparison(
            title=self.title, before=self.onto, after=self._after, outcome="impossible"
        )
        opposite = "faster" if self.case.direction == "slower" else "slower"
        expected = opposite if self.reverse else self.case.direction
        untold: Comparison | None = None
        try:
            for number, way in enumerate(self._all(), start=1):
                if way.tree.id == self._end.id:
                    return untold or impossible.model_copy(update={"note": self._there})
                name = self._after if number == 1 else f"{self._after}-{number}"
                self.supply.add(name, way.tree)
                comparison = judged(
                    self.title, self.onto, name, self.supply, compare, expected=expected
                ).model_copy(update={"how": way.how})
                if comparison.outcome != "unknown" or name in self.supply.origins:
                    return comparison
                untold = untold or comparison  # it could not even be built: is there another way?
        except (SourceError, EditError) as error:
            why = f"its change does not fit there: {error.message.splitlines()[0]}"
            return untold or impossible.model_copy(update={"note": why})
        return untold or impossible

    def _all(self) -> Iterator[Counterfactual]:
        if self._refused is not None:
            raise self._refused
        if self._first is not None:
            yield self._first
            yield from self._ways

    @property
    def _end(self) -> Tree:
        return self.case.trees[self.onto]

    @property
    def _after(self) -> str:
        return f"{self.onto}-{'without' if self.reverse else 'with'}-{self.case.culprit}"

    @property
    def _there(self) -> str:
        return "its change is not there to be removed" if self.reverse else "it is there already"


def judged(
    title: str, before: str, after: str, supply: Sources, compare: Compare, *, expected: str
) -> Comparison:
    """Two candidates side by side, and whether the result is as expected."""
    boundary = compare(before, after)
    builds = tuple(supply.origins[name] for name in (before, after) if name in supply.origins)
    confirms = None if boundary.direction == "unknown" else boundary.direction == expected
    return Comparison(
        title=title,
        before=before,
        after=after,
        outcome=boundary.direction,
        effect=boundary.effect,
        interval=boundary.effect_interval,
        counts=boundary.counts,
        note="" if boundary.found else boundary.summary,
        confirms=confirms,
        builds=builds,
        metric=boundary.metric,
    )
