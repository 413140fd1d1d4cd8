"""From what was measured to the answer, in words with their figures. Core pure logic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dsbisect.search.answer_text import (
    FIRST_END_SLOW,
    by_metric,
    none_text,
    too_few_text,
    with_suspects,
)
from dsbisect.search.plain.verdicts import CandidateView, Side
from dsharness.model import Boundary, CostStep, Verdict
from dsresults.compare.cost_ratio import Ratio, compare_by


def found(view: CandidateView, before: str, after: str) -> Boundary:
    """The ends differ and nothing measurable is left between ``before`` and ``after``."""
    ratio = view.ratio(after, before)
    whole = view.question.line
    suspects = whole[whole.index(before) + 1 : whole.index(after) + 1]
    word = "slower" if view.slower else "faster"
    effect = _oriented(ratio, view) if ratio else None
    size = f"{_times(effect.value)} {word}" if effect else word
    summary = (
        f"{after} is the first {word} one: {size} than {before}{by_metric(view.question.decider)}"
    )
    if effect and effect.pairs > 1:
        summary += f" (99 % interval {_times(effect.low)} to {_times(effect.high)})"
    summary = with_suspects(summary, before, after, suspects)
    if not view.slower:
        summary += FIRST_END_SLOW
    return _boundary(
        view,
        before=before,
        after=after,
        suspects=suspects,
        found=True,
        direction=word,
        effect=effect.value if effect else None,
        effect_interval=effect.interval if effect and effect.pairs > 1 else None,
        summary=summary,
    )


def no_difference(view: CandidateView) -> Boundary:
    """This run saw no difference between the ends; no culprit is named."""
    first, last, ratio = view.line[0], view.line[-1], view.ends_ratio
    if ratio is None or ratio.pairs < view.policy.least_turns:
        return _boundary(
            view,
            found=False,
            direction="unknown",
            summary=f"{first} and {last} could not be compared: too few runs were usable",
        )
    visible = ratio.smallest_visible_pct
    return _boundary(
        view,
        found=False,
        direction="none",
        effect=ratio.value,
        effect_interval=ratio.interval,
        smallest_visible_pct=visible,
        summary=none_text(
            view.question, first, last, by=by_metric(view.question.decider), visible_pct=visible
        ),
    )


def too_few(view: CandidateView) -> Boundary:
    """Fewer than two candidates can be measured."""
    return _boundary(
        view,
        found=False,
        direction="unknown",
        summary=too_few_text(_unmeasured(view)),
    )


def _boundary(view: CandidateView, **facts: object) -> Boundary:
    return view.question.boundary(
        **facts,
        unmeasured=_unmeasured(view),
        steps=tuple(_steps(view)),
        verdicts=tuple(_verdicts(view)),
    )


def _verdicts(view: CandidateView) -> Iterator[Verdict]:
    return (view.verdict(candidate) for candidate in view.question.line)


def _unmeasured(view: CandidateView) -> dict[str, str]:
    reasons = ((candidate, view.why_not(candidate)) for candidate in view.question.line)
    return {candidate: why for candidate, why in reasons if why is not None}


def _steps(view: CandidateView) -> Iterator[CostStep]:
    """Differences between measured neighbours, through the first end they share when need be."""
    measured = [c for c in view.line if view.side(c)[0] is not Side.UNKNOWN or view.history.of(c)]
    for before, after in pairwise(measured):
        ratio = view.ratio(after, before) or _through_first(view, before, after)
        if ratio is None or not ratio.differs:
            continue
        if not 1 / view.policy.smallest_effect < ratio.value < view.policy.smallest_effect:
            yield CostStep(before=before, after=after, ratio=ratio.value, interval=ratio.interval)


def _through_first(view: CandidateView, before: str, after: str) -> Ratio | None:
    """(after / first) / (before / first): intervals add up, so this errs on the wide side."""
    first = view.line[0]
    if first in {before, after}:
        return None
    one, other = (
        compare_by(view.question.decider, view.history.of(c), view.history.of(first))
        for c in (after, before)
    )
    if one is None or other is None or other.low <= 0:
        return None
    return Ratio(
        value=one.value / other.value,
        low=one.low / other.high,
        high=one.high / other.low,
        pairs=min(one.pairs, other.pairs),
    )


def _oriented(ratio: Ratio, view: CandidateView) -> Ratio:
    return ratio if view.slower else ratio.inverse()


def _times(value: float) -> str:
    return f"{value:.0f} times" if value >= 10 else f"{value:.1f} times"
