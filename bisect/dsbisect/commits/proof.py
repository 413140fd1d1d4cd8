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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.search.bayes.belief import Certainty
from dsbisect.search.build_scatter import PooledStep
from dsbuilds.history.counterfactual import Counterfactual
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import CandidateError, EditError, InconclusiveError, SourceError
from dsharness.model import DECIDER, NO_DIFFERENCE, Boundary, Provenance
from dsresults.commits_result import Comparison

Compare = Callable[[str, str], Boundary]  # (before, after), both candidates of the supply


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
    case: Case, supply: SourceSupply, compare: Compare, several: SeveralBuilds | None = None
) -> tuple[Comparison, ...]:
    """Every comparison that can be made; one that cannot says why."""
    layouts = "the culprit against its parent, {} layouts of each, built from nothing"
    return (
        _clean(case, supply, compare)
        if several is None
        else _layouts(case.parent, case.culprit, case.trees, supply, several, title=layouts),
        _counterfactual(
            case, supply, compare,
            title=f"{case.last} without the culprit", onto=case.bad, reverse=True,
        ),
        _counterfactual(
            case, supply, compare,
            title=f"{case.first} with the culprit", onto=case.good, reverse=False,
        ),
    )  # fmt: skip


def _clean(case: Case, supply: SourceSupply, compare: Compare) -> Comparison:
    before, after = (f"{name}-clean" for name in (case.parent, case.culprit))
    supply.add(before, case.trees[case.parent], clean=True)
    supply.add(after, case.trees[case.culprit], clean=True)
    title = "the culprit against its parent, both built from nothing"
    return judged(title, before, after, supply, compare, expected=case.direction)


def compare_ends(
    ends: tuple[str, str], trees: Mapping[str, Tree], supply: SourceSupply, several: SeveralBuilds
) -> Comparison:
    """Both ends of a line in several layouts, which tells whether one costs more."""
    title = "the last end against the first, {} layouts of each, built from nothing"
    found = _layouts(*ends, trees, supply, several, title=title)
    known = found.outcome in {"slower", "faster", "none"}
    return found.model_copy(update={"confirms": found.outcome == "none" if known else None})


def equal_ends(whole: Boundary, ends: Comparison, level: float) -> Boundary:
    """An answer that was left open because builds differ, with what several of each end say.

    Where they agree, a step is left if the search had one left and their interval misses it too.
    """
    if ends.outcome != "none" or ends.interval is None or whole.confidence is None:
        return whole
    step = whole.confidence / level
    left = step * (1 - level)
    none = 1 - step
    chance = none / (none + left)
    if chance < Certainty.none:
        return whole
    least = max(abs(math.log(side)) for side in ends.interval)
    visible = 100 * math.expm1(least)
    summary = (
        f"{NO_DIFFERENCE} found between {whole.line[0]} and {whole.line[-1]} with "
        f"{whole.workload_id} (chance {chance:.1%}): the search left {step:.1%} to a step, and "
        f"{ends.title.removeprefix('the last end against the first, ')}, differ by no more than "
        f"by themselves; smallest drop this run could have seen: {math.ceil(visible)} %"
    )
    return whole.model_copy(
        update={
            "direction": "none", "shape": "ends", "effect": 1.0, "suspects": (), "chances": {},
            "smallest_visible_pct": visible, "confidence": chance, "summary": summary,
        }
    )  # fmt: skip


def _layouts(
    first: str,
    second: str,
    trees: Mapping[str, Tree],
    supply: SourceSupply,
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
            title=title, before=before, after=after, outcome="unknown",
            note=error.message.splitlines()[0],
        )  # fmt: skip
    return pooled(
        step, several.step, title=title, before=before, after=after, metric=several.metric,
        builds=tuple(
            supply.builds[name].provenance
            for side in names
            for name in side
            if name in supply.builds
        ),
    )  # fmt: skip


def pooled(
    step: PooledStep,
    found: float,
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
    confirms = (slower == (found > 0)) if step.differs else None if step.allows(found) else False
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


def _counterfactual(
    case: Case, supply: SourceSupply, compare: Compare, *, title: str, onto: str, reverse: bool
) -> Comparison:
    """The end against the same with the other side's code, made in the first way that builds."""
    after = f"{onto}-{'without' if reverse else 'with'}-{case.culprit}"
    impossible = Comparison(title=title, before=onto, after=after, outcome="impossible")
    opposite = "faster" if case.direction == "slower" else "slower"
    expected = opposite if reverse else case.direction
    found: Comparison | None = None
    try:
        for number, way in enumerate(case.changed(case.trees[onto], reverse), start=1):
            if way.tree.id == case.trees[onto].id:
                there = (
                    "its change is not there to be removed" if reverse else "it is there already"
                )
                return found or impossible.model_copy(update={"note": there})
            name = after if number == 1 else f"{after}-{number}"
            supply.add(name, way.tree)
            this = judged(title, onto, name, supply, compare, expected=expected)
            this = this.model_copy(update={"how": way.how})
            if this.outcome != "unknown" or name in supply.builds:
                return this
            found = found or this  # it could not even be built: is there another way?
    except (SourceError, EditError) as error:
        why = f"its change does not fit there: {error.message.splitlines()[0]}"
        return found or impossible.model_copy(update={"note": why})
    return found or impossible


def judged(
    title: str, before: str, after: str, supply: SourceSupply, compare: Compare, *, expected: str
) -> Comparison:
    """Two candidates side by side, and whether the result is as expected."""
    boundary = compare(before, after)
    builds = tuple(
        supply.builds[name].provenance for name in (before, after) if name in supply.builds
    )
    confirms = None if boundary.direction == "unknown" else boundary.direction == expected
    return Comparison(
        title=title,
        before=before,
        after=after,
        outcome=boundary.direction,
        effect=boundary.effect,
        interval=boundary.effect_interval,
        note="" if boundary.found else boundary.summary,
        confirms=confirms,
        builds=builds,
        metric=boundary.metric,
    )
