"""From the probabilities to the answer, in words with their figures. Core pure logic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Literal

from dsharness.measure.metric import Metric, Words
from dsharness.model import DECIDER, NO_DIFFERENCE, Boundary, CostStep, Counts
from dsresults.number_text import count_intervals, from_to, plainly
from dssearch.bayes.answer_figures import (
    CLEAR,
    RateDifference,
    Word,
    builds_differ,
    difference,
    ends_apart,
    odd_ones,
    own_ratio,
    ramp_range,
    step_ratio,
    steps,
    unsteady,
    verdicts,
    visible_pct,
    witnessed,
)
from dssearch.bayes.belief import LEAST_IN_SCATTER, Beliefs, Certainty, fewest
from dssearch.bayes.counted_step import counted_between, counted_step
from dssearch.question import Question

RATE_ALONE = 0.2  # a difference of logs that is mentioned although CPU time shows none
DOUBTLESS = 4.0  # standard errors of it
FIRST_END_SLOW = "; the first end is the slow one"
WANTED_PCT = 10.0  # who has not said what matters wants to hear of such a difference
MOST_TOLD = 50  # a longer set of suspects is shown by its ends


def conclude(
    beliefs: Beliefs,
    certainty: Certainty,
    stop: str = "",
    missing: str = "",
    *,
    builds: bool = False,
) -> Boundary:
    """The best answer so far; ``stop`` and ``missing`` say why it ended early, and what is missing.

    ``builds``: that is other builds of the same sources.
    """
    if beliefs.settled(certainty):
        boundary = _named(beliefs, certainty)
    elif gaps := beliefs.either(certainty):
        boundary = _either(beliefs, certainty, gaps)
    elif beliefs.ramped(certainty):
        boundary = _ramp(beliefs, certainty)
    elif beliefs.refuted(certainty) or (stop and beliefs.nothing(certainty) >= certainty.none):
        boundary = _none(beliefs, certainty)
    else:
        boundary = _undecided(beliefs, certainty, stop, missing)
        boundary = boundary.model_copy(update={"shape": "builds" if builds else None})
    odd = odd_ones(beliefs)
    notes = "".join(_alone(beliefs, step) for step in odd)
    return boundary.model_copy(update={"odd": odd, "summary": boundary.summary + notes})


def unanswerable(question: Question, failed: Mapping[str, str]) -> Boundary:
    """Fewer than two candidates can be measured."""
    summary = _too_few_text(failed)
    return question.boundary(
        unmeasured=dict(failed), found=False, direction="unknown", summary=summary
    )


def _named(beliefs: Beliefs, certainty: Certainty) -> Boundary:
    top, posterior, names = beliefs.top, beliefs.posterior, beliefs.line.names
    low, high = posterior.ends(top)
    before, after = names[low], names[high]
    chance = float(posterior.stepped[top])
    words = beliefs.decider.words
    word, size, least, most = _size(beliefs, top, certainty)
    slower = word == "slower"
    counts = counted_step(beliefs, top, certainty.level)
    comparison = (
        f"{'it ' if words.verb else ''}{words.said(word, _times(size))} than {before}"
        f"{'' if words.verb else _by_metric(beliefs.decider)} "
        f"({certainty.level:.0%} interval {_from_to(least, most)}"
        if counts is None
        else f"{from_to(counts)} after {before} "
        f"({certainty.level:.0%} intervals {count_intervals(counts)}"
    )
    summary = f"{after} is the first {words.one(word)}: {comparison}; chance {chance:.1%})"
    suspects = beliefs.names(top)
    summary = _with_suspects(summary, before, after, suspects)
    if not slower and ends_apart(posterior) < -beliefs.least(certainty):
        worse = f"; the first end is the one {words.one('slower')}"
        summary += worse if words.verb else FIRST_END_SLOW
    places, likely = _also(beliefs, certainty), steps(beliefs, certainty)
    also = tuple(name for place in places for name in place)
    if also:
        sizes = {step.after: f"{_sized(beliefs, step)} than {step.before}" for step in likely}
        summary += second_step(beliefs.second, places, sizes)
    summary += _notes(beliefs)
    opinion, apart = witnessed(beliefs)
    doubt = _contradiction(opinion, apart, beliefs)
    return beliefs.boundary(
        before=before,
        after=after,
        suspects=suspects,
        found=not doubt,
        direction="unknown" if doubt else word,
        effect=size,
        effect_interval=(least, most),
        effect_level=certainty.level,
        counts=counts,
        summary=f"inconclusive: {doubt}. By {beliefs.decider.label} {summary}"
        if doubt
        else summary,
        steps=likely,
        verdicts=verdicts(beliefs, certainty, slower=slower),
        confidence=chance,
        chances=_chances(beliefs, (*suspects, *also)),
        also=also,
        witness=opinion,
    )


def _either(beliefs: Beliefs, certainty: Certainty, gaps: tuple[int, int]) -> Boundary:
    """Two candidates of which one or both changed: the first differs from what is on both sides."""
    posterior, names, words = beliefs.posterior, beliefs.line.names, beliefs.decider.words
    (low, middle), (_, high) = (posterior.ends(gap) for gap in gaps)
    before, first, after = names[low], names[middle], names[high]
    word, size, least, most = _size(beliefs, gaps, certainty)
    chance = float(posterior.stepped[list(gaps)].sum() - posterior.pairs[gaps])
    ratio, interval = own_ratio(beliefs, *gaps, certainty.level)
    alone = CostStep(before=before, after=first, ratio=ratio, interval=interval)
    itself = "" if words.verb else "is "
    summary = (
        f"{first} or {after} is the first {words.one(word)}, and no run tells which: "
        f"{after} {itself}{words.said(word, _times(size))} than {before} "
        f"({certainty.level:.0%} interval {_from_to(least, most)}; chance {chance:.1%}), "
        f"and {first} between them {itself}{_sized(beliefs, alone, lasts=False)}"
    )
    return beliefs.boundary(
        before=before,
        after=after,
        suspects=(first, after),
        found=True,
        direction=word,
        effect=size,
        effect_interval=(least, most),
        effect_level=certainty.level,
        summary=summary + _notes(beliefs),
        verdicts=verdicts(beliefs, certainty, slower=word == "slower"),
        confidence=chance,
        chances=_chances(beliefs, (first, after)),
    )


def _size(
    beliefs: Beliefs, gaps: int | tuple[int, int], certainty: Certainty
) -> tuple[Literal["slower", "faster"], float, float, float]:
    """Return which way a step goes, by how many times, and the interval of that."""
    ratio, (low, high) = step_ratio(beliefs, gaps, certainty.level)
    if ratio > 1:
        return "slower", ratio, low, high
    return "faster", 1 / ratio, 1 / high, 1 / low


def _contradiction(opinion: Word | None, apart: RateDifference | None, beliefs: Beliefs) -> str:
    """Return the witness's own figures where it contradicts; else empty."""
    if opinion != "contradicts" or apart is None or beliefs.witness is None:
        return ""
    low, high = (math.exp(apart.size + sign * CLEAR * apart.error) for sign in (-1, 1))
    return (
        f"{beliefs.witness.metric.label} contradicts: by it {_times(math.exp(apart.size))} "
        f"the time per operation ({_from_to(low, high)})"
    )


def _ramp(beliefs: Beliefs, certainty: Certainty) -> Boundary:
    names, chance = beliefs.line.names, beliefs.posterior.ramp
    posterior = beliefs.posterior
    where = ramp_range(posterior)
    first, last = where.first, where.last
    word = "slower" if posterior.rise > 0 else "faster"
    size, words = math.exp(abs(posterior.rise)), beliefs.decider.words
    counts = counted_between(beliefs, max(0, first - 1), last, certainty.level)
    comparison = words.said(word, _times(size)) if counts is None else _counted(words, word, counts)
    return beliefs.boundary(
        found=False,
        direction=word,
        shape="ramp",
        effect=size,
        suspects=names[first : last + 1],
        counts=counts,
        summary=f"a ramp over {names[first]} to {names[last]} ({last - first + 1} candidates), "
        f"{comparison} in all (chance {chance:.1%}): "
        "many small steps, no single culprit" + _notes(beliefs),
        verdicts=verdicts(beliefs, certainty, slower=None),
        confidence=chance,
    )


def _none(beliefs: Beliefs, certainty: Certainty) -> Boundary:
    names, visible = beliefs.line.names, visible_pct(beliefs, certainty)
    chance = beliefs.nothing_above(math.log1p(visible / 100)) * (1 - beliefs.by_luck)
    shape, head, between = _nature_of_none(beliefs)
    return beliefs.boundary(
        found=False,
        direction="none",
        shape=shape,
        effect=1.0,
        smallest_visible_pct=visible,
        summary=head
        + _none_text(
            beliefs.question,
            names[beliefs.low],
            names[beliefs.high],
            by=_by_metric(beliefs.decider),
            size=_visible(beliefs, visible),
            chance=chance,
        )
        + between
        + _smaller(visible, certainty)
        + _expected(certainty)
        + _elsewhere(beliefs)
        + _notes(beliefs),
        verdicts=verdicts(beliefs, Certainty(), slower=None),
        confidence=chance,
    )


def _smaller(visible_pct: float, certainty: Certainty) -> str:
    """Return what it takes to see less, where that is worth asking."""
    if visible_pct <= WANTED_PCT or certainty.smallest is not None:
        return ""
    builds = WANTED_PCT / LEAST_IN_SCATTER
    return (
        f"; one of {WANTED_PCT:g} % needs `--smallest {WANTED_PCT:g}`, "
        f"and builds of one source that differ by less than {builds:g} % themselves"
    )


def _expected(certainty: Certainty) -> str:
    if certainty.expected is None:
        return ""
    return f"; the expected {100 * math.expm1(certainty.expected):.3g} % does not reproduce here"


def _nature_of_none(beliefs: Beliefs) -> tuple[Literal["builds", "ends"] | None, str, str]:
    """Return what "no difference" leaves open: what builds differ by, and what lies between."""
    if builds_differ(beliefs.posterior):
        ends, builds = (
            100 * math.expm1(abs(size))
            for size in (ends_apart(beliefs.posterior), beliefs.posterior.scatter)
        )
        head = (
            f"the ends differ by {ends:.1f} %, within what builds of one source differ by "
            f"themselves (about {builds:.1f} %): "
        )
        return "builds", head, ""
    inside = len(beliefs.posterior.runs.positions) - 2
    if inside >= beliefs.high - beliefs.low - 1 - len(beliefs.failed):
        return None, "", ""
    between = (
        f"; a change that was taken back in between shows only where something was measured "
        f"({inside} of the {beliefs.high - beliefs.low - 1} inside): "
        "`--inside K` measures K of them"
    )
    return "ends", "", between


def _elsewhere(beliefs: Beliefs) -> str:
    """Return what only the rate shows: a lock or a queue costs no CPU time."""
    evidence = beliefs.witness
    ends = beliefs.posterior.runs.positions
    apart = None if evidence is None else difference(evidence, ends[:1], ends[-1:])
    if (
        evidence is None
        or apart is None
        or abs(apart.size) < max(RATE_ALONE, DOUBTLESS * apart.error)
    ):
        return ""
    way = "slower" if apart.size > 0 else "faster"
    return (
        f"; note: by {evidence.metric.label} {beliefs.line.names[beliefs.high]} is "
        f"{_times(math.exp(abs(apart.size)))} {way}: a lock or a queue costs no CPU time"
    )


def _undecided(beliefs: Beliefs, certainty: Certainty, stop: str, missing: str) -> Boundary:
    names, nothing = beliefs.line.names, beliefs.nothing(certainty)
    chance = 1 - nothing
    suspects, likely = beliefs.credible(certainty.level), steps(beliefs, certainty)
    return beliefs.boundary(
        found=False,
        direction="unknown",
        suspects=suspects,
        smallest_visible_pct=visible_pct(beliefs, certainty),
        summary=f"undecided between {names[beliefs.low]} and {names[beliefs.high]}"
        f"{': ' + stop if stop else ''}; chance of a step {chance:.1%}, of none {nothing:.1%}; "
        f"a step is, with {certainty.level:.0%}, among {len(suspects)}: {_listed(suspects)}"
        + _likely(beliefs, likely)
        + (f"; {missing}" if missing else "")
        + _notes(beliefs),
        steps=likely,
        verdicts=verdicts(beliefs, certainty, slower=None),
        confidence=chance * certainty.level,
        chances=_chances(beliefs, suspects),
    )


def _likely(beliefs: Beliefs, likely_steps: Sequence[CostStep]) -> str:
    """``; likely: c 1.35 times slower than b (94%)`` where one candidate alone is meant."""
    index, chances = beliefs.line.index, beliefs.chances()
    phrases = [
        f"{step.after} {_sized(beliefs, step)} than {step.before} "
        f"({chances[index[step.after]]:.0%})"
        for step in likely_steps
        if index[step.after] - index[step.before] == 1
    ]
    return f"; likely: {', '.join(phrases)}" if phrases else ""


def _sized(beliefs: Beliefs, step: CostStep, *, lasts: bool = True) -> str:
    """``1.35 times slower``: which way a step goes, and how far; of counts, from where to where."""
    words, word = beliefs.decider.words, "slower" if step.ratio > 1 else "faster"
    low, high = (beliefs.line.index[name] for name in (step.before, step.after))
    counts = counted_between(beliefs, low, high, Certainty.level, lasts=lasts)
    if counts is None:
        return words.said(word, _times(max(step.ratio, 1 / step.ratio)))
    return _counted(words, word, counts)


def _counted(words: Words, word: str, counts: Counts) -> str:
    """``flushes more to disk (from 0 to 2 flushes an operation)``."""
    return f"{words.said(word)} ({from_to(counts)})"


def _also(beliefs: Beliefs, certainty: Certainty) -> tuple[tuple[str, ...], ...]:
    """Return where a second step would be, gap by gap, with the level of certainty.

    Empty while the chance of a second step is below what the level leaves open.
    """
    if beliefs.second < 1 - certainty.level:
        return ()
    gaps = fewest(beliefs.second_by_gap, certainty.level)
    return tuple(beliefs.names(gap) for gap in gaps)


def _chances(beliefs: Beliefs, names: tuple[str, ...]) -> dict[str, float]:
    chances = beliefs.chances()
    return {name: round(float(chances[beliefs.line.index[name]]), 6) for name in names[:MOST_TOLD]}


def second_step(chance: float, places: Sequence[tuple[str, ...]], sizes: Mapping[str, str]) -> str:
    """``a second step: c 2.10 times faster than b (100%)``; ``… is possible (9%): c`` in doubt.

    ``sizes``: of what is likely, by the last of its place, which way it goes and how far.
    """
    likely = [f"{_listed(place)} {sizes[place[-1]]}" for place in places if place[-1] in sizes]
    rest = tuple(name for place in places if place[-1] not in sizes for name in place)
    words = ", ".join([*likely, *([_listed(rest)] if rest else [])])
    if f"{chance:.0%}" == "100%":
        return f"; a second step: {words} (100%)"
    return f"; a second step is possible ({chance:.0%}): {words}"


def _bound(beliefs: Beliefs) -> str:
    """Runs whose load had no CPU left say less of the system than they seem to."""
    runs = [s for group in beliefs.history.samples.values() for s in group if s.valid]
    bound = len(runs) - len(beliefs.decider.telling(runs))
    if not bound:
        return ""
    return (
        f"; note: in {bound} of {len(runs)} runs the load had no CPU left, "
        f"so {beliefs.decider.label} says more of the load than of the system"
    )


def _notes(beliefs: Beliefs) -> str:
    return _canary(beliefs) + _bound(beliefs)


def _alone(beliefs: Beliefs, step: CostStep) -> str:
    """Return what differs from all before and after it is no culprit, and worth knowing."""
    comparison = _sized(beliefs, step, lasts=False)
    verb = "" if beliefs.decider.words.verb else "is "
    return f"; note: {step.after} alone {verb}{comparison}, what follows is not"


def _canary(beliefs: Beliefs) -> str:
    stray = unsteady(beliefs)
    return f"; note: {stray}" if stray else ""


def _listed(names: tuple[str, ...]) -> str:
    if len(names) <= 4:
        return ", ".join(names)
    return f"{names[0]} to {names[-1]} ({len(names)})"


def _from_to(low: float, high: float) -> str:
    return f"{_times(low).removesuffix(' times')} to {_times(high)}"


def _times(value: float) -> str:
    return f"{value:.2f} times" if value < 100 else f"{value:.0f} times"


def _by_metric(decider: Metric) -> str:
    """Return by which metric, unless it is the usual one."""
    return "" if decider.name == DECIDER else f" by {decider.label}"


def _visible(beliefs: Beliefs, pct: float) -> str:
    """``5 % or more``; of counts how many more it would have been."""
    metric, first = beliefs.decider, beliefs.ends[0]
    if metric.floor is None:
        return f"{pct:.0f} % or more"
    runs = (sample for sample in beliefs.history.of(first) if sample.valid)
    base = mean(sample.metrics[metric.name].value for sample in runs)
    more = metric.at_slowness(base, 1 + pct / 100) - max(0.0, base)
    return f"{plainly(more)} {metric.counts} an operation or more"


def _none_text(
    question: Question, first: str, last: str, *, by: str, size: str, chance: float
) -> str:
    """The ends agree as far as these runs could show; no culprit is named."""
    return (
        f"{NO_DIFFERENCE} of {size} found between {first} and {last} with "
        f"{question.workload_id}{by} (chance {chance:.1%})"
    )


def _too_few_text(unmeasurable: Mapping[str, str]) -> str:
    """Fewer than two candidates can be measured."""
    reasons = "; ".join(f"{name}: {why}" for name, why in unmeasurable.items())
    return f"fewer than two candidates can be measured: {reasons}"


def _with_suspects(summary: str, before: str, after: str, suspects: tuple[str, ...]) -> str:
    """Return the summary with what could not be judged between the two, if there is anything."""
    if len(suspects) < 2:
        return summary
    skipped = ", ".join(suspects[:-1])
    return f"between {before} and {after}: {summary}, but {skipped} could not be judged"
