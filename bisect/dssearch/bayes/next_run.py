"""The next step: the most bits about the step per second. Core pure logic, no I/O.

A run of a candidate tells hypotheses apart as far as they expect different values of it. What
they expect is smeared by what is not known: the levels (so a reference can be worth more than the
candidate in question) and the noise of that many runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dssearch.bayes.belief import Beliefs
from dssearch.bayes.line_places import Split
from dssearch.bayes.posterior import Posterior, led
from dssearch.bayes.prior import Budget, Costs
from dssearch.bayes.track import TINY, Floats, Ints

BATCHES = (1, 2, 4, 8, 16, 32)
LEAST = 1e-4  # hypotheses less likely than this decide nothing
PAIRS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Hypothesis:
    """A kind of history with the levels it expects."""

    chance: float
    levels: Floats  # part, level
    steps: tuple[int, ...] = ()  # the gaps that hold its steps; parts lie between them
    ramp: tuple[int, int] | None = None  # gaps of its start and end


def hypotheses(posterior: Posterior) -> list[Hypothesis]:
    """Return those that matter; their chances sum to 1."""
    candidates = [Hypothesis(chance=posterior.none, levels=_none(posterior))]
    lower, upper = _one(posterior)
    single = posterior.one + np.diag(posterior.two) + np.diag(posterior.ramps)
    for gap in np.flatnonzero(single > LEAST):
        levels = np.stack([lower[gap], upper[gap]])
        candidates.append(Hypothesis(chance=float(single[gap]), levels=levels, steps=(int(gap),)))
    pairs = list(_likeliest(posterior.two))
    for (first, second, chance), levels in zip(pairs, _two(posterior, pairs), strict=True):
        candidates.append(Hypothesis(chance=chance, levels=levels, steps=(first, second)))
    for first, second, chance in _likeliest(posterior.ramps):
        levels = np.zeros((0, len(posterior.grid.levels)))
        candidates.append(Hypothesis(chance=chance, levels=levels, ramp=(first, second)))
    total = sum(hypothesis.chance for hypothesis in candidates)
    return [replace(hypothesis, chance=hypothesis.chance / total) for hypothesis in candidates]


def _likeliest(table: Floats) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of different gaps."""
    off = np.triu(table, 1)
    order = np.argsort(-off, axis=None, kind="stable")[:PAIRS]
    for first, second in zip(*np.unravel_index(order, off.shape), strict=True):
        if off[first, second] > LEAST:
            yield int(first), int(second), float(off[first, second])


def bits(
    posterior: Posterior, options: Sequence[int | Split], *, all_steps: bool = False
) -> Floats:
    """Return them by option (a measured candidate, or a split) and number of runs in BATCHES.

    Bits about what will be named, (12): whether there is a second step behind a first one that is
    clear tells nothing about the first, unless ``all_steps`` are asked for.
    """
    guesses = hypotheses(posterior)
    weights, table = _expected(posterior, guesses, options, all_steps=all_steps)
    reached = np.flatnonzero(weights.sum((0, 1)) > 0)
    weights, table = weights[:, :, reached], table[reached]
    chance = weights.sum(-1)
    distance = np.subtract.outer(posterior.grid.levels, posterior.grid.levels) / posterior.noise
    result = np.zeros((len(options), len(BATCHES)))
    density = np.exp(-0.5 * distance**2)
    for batch in range(len(BATCHES)):
        density = density if batch == 0 else density**2  # each batch has twice the runs
        kernel = density * posterior.grid.cells
        outcomes = table @ (kernel / kernel.sum(1, keepdims=True))
        joint = weights @ outcomes
        entropies = _entropy(joint / np.maximum(TINY, chance)[:, :, None])
        result[:, batch] = _entropy(joint.sum(1)) - (chance * entropies).sum(1)
    buildable = np.array(
        [option.buildable * option.news if isinstance(option, Split) else 1.0 for option in options]
    )
    useful: Floats = _repeated(posterior, options, np.maximum(0.0, result)) * buildable[:, None]
    return useful * _ordinary(posterior, options)[:, None]


def _ordinary(posterior: Posterior, options: Sequence[int | Split]) -> Floats:
    """Return the chance of each that it is no odd one: one that differs alone tells nothing."""
    top = int(np.argmax(posterior.stepped))
    odd = posterior.odd_chances(top if posterior.stepped[top] > posterior.none else None)
    return np.array([1.0 if isinstance(o, Split) else max(0.0, 1.0 - odd[o]) for o in options])


def _repeated(posterior: Posterior, options: Sequence[int | Split], fresh: Floats) -> Floats:
    """Return what is left of that where a candidate was measured before: (13).

    How far its own build differs from the level of its segment is not known, and its runs cannot
    show it: each is worth less than the one before.
    """
    counts = np.array([0 if isinstance(o, Split) else posterior.runs.counts[o] for o in options])
    runs, share = np.array(BATCHES), (posterior.scatter / posterior.noise) ** 2
    before, after = counts[:, None], counts[:, None] + runs[None, :]
    worth = runs[None, :] / ((1 + share * before) * (1 + share * after))
    # linear below one run
    gains = np.concatenate([np.zeros((len(options), 1)), fresh], axis=1)
    batch_sizes = np.array([0, *BATCHES])
    return np.array([np.interp(x, batch_sizes, y) for x, y in zip(worth, gains, strict=True)])


RAMP = (-1,)  # what every ramp names
NO_GAP = np.iinfo(np.int64).max  # after all others


def _answer(posterior: Posterior, hypothesis: Hypothesis, *, all_steps: bool) -> tuple[int, ...]:
    """Return the gaps that would be named under it, if it is no ramp."""
    likely = posterior.stepped
    return (
        hypothesis.steps
        if all_steps
        else tuple(sorted(hypothesis.steps, key=lambda gap: -likely[gap])[:1])
    )


def _expected(
    posterior: Posterior,
    guesses: Sequence[Hypothesis],
    options: Sequence[int | Split],
    *,
    all_steps: bool,
) -> tuple[Floats, Floats]:
    """Return how likely each option is to be at each expected level, by what would be named.

    A split parts the answer of its gap in two, which is what it is for.
    """
    sure = [guess for guess in guesses if guess.ramp is None]
    ramps = [guess for guess in guesses if guess.ramp is not None]
    answers = [_answer(posterior, guess, all_steps=all_steps) for guess in sure]
    places = {
        answer: number for number, answer in enumerate(sorted({*answers, *([RAMP] * len(ramps))}))
    }
    tables = [guess.levels for guess in sure]
    starts = np.cumsum([0] + [len(levels) for levels in tables])
    # all ramps name the same, so each option has one row for them
    rows = starts[-1] + (len(options) if ramps else 0)
    weights = np.zeros((len(options), 2 * len(places), rows))
    place = np.array([places[answer] for answer in answers])[:, None]
    chance = np.array([guess.chance for guess in sure])[:, None]
    own = np.arange(len(options))
    # by hypothesis and option: the part it lies on, and the chance that it is on the next one
    gaps = np.array([option.gap if isinstance(option, Split) else option for option in options])
    splits = np.array([option.share if isinstance(option, Split) else 0.0 for option in options])
    steps = _padded([guess.steps for guess in sure])
    part = starts[:-1, None] + (steps < gaps).sum(1)
    share = np.where((steps == gaps).any(1), splits, 0.0)
    weights[own, place, part] = chance * (1 - share)
    hypothesis, option = np.nonzero(share)
    parted = (_padded(answers) == gaps).any(1)
    second_part = (place + len(places) * parted)[hypothesis, option]
    weights[option, second_part, part[hypothesis, option] + 1] = (chance * share)[
        hypothesis, option
    ]
    if ramps:
        chances = np.array([ramp.chance for ramp in ramps])
        weights[own, places[RAMP], starts[-1] + own] = chances.sum()
        levels = _on_ramps(posterior, ramps, options)
        tables.append(np.einsum("h,hol->ol", chances / chances.sum(), levels))
    return weights, np.concatenate(tables)


def _padded(gaps: Sequence[tuple[int, ...]]) -> Ints:
    """Return a row for each, as many columns as the longest has, and an axis for the options."""
    width = max(map(len, gaps))
    filled = [(*numbers, *[NO_GAP] * (width - len(numbers))) for numbers in gaps]
    return np.array(filled, dtype=np.int64).reshape(len(gaps), width, 1)


def _on_ramps(
    posterior: Posterior, ramps: Sequence[Hypothesis], options: Sequence[int | Split]
) -> Floats:
    """Return by ramp, option and level where each option lies on each ramp."""
    first, last = (np.array([ramp.ramp[end] for ramp in ramps if ramp.ramp]) for end in (0, 1))
    positions = posterior.runs.positions
    start = ((positions[first] + positions[first + 1] - 1) / 2)[:, None]
    end = ((positions[last] + 1 + positions[last + 1]) / 2)[:, None]
    places = np.array(
        [o.position if isinstance(o, Split) else positions[o] for o in options], dtype=np.float64
    )
    part = np.clip((places - start) / (end - start), 0.0, 1.0)
    sizes = posterior.ramp_sizes[first, last][:, None]
    middle = posterior.ramp_levels[first, last][:, None] + part * sizes
    counts = posterior.runs.counts
    error = math.hypot(posterior.noise / math.sqrt(counts.mean()), posterior.scatter) / 2
    error = max(error, posterior.grid.width)
    density = np.exp(-0.5 * ((posterior.grid.levels - middle[:, :, None]) / error) ** 2)
    density = density * posterior.grid.cells + TINY
    shares: Floats = density / density.sum(-1, keepdims=True)
    return shares


def _none(posterior: Posterior) -> Floats:
    table = posterior.chain.sums[:, -1]
    likely = np.exp(table - table.max(-1, keepdims=True)) * posterior.grid.cells
    return _mixed(likely, posterior.any_way)[None, :]


def _one(posterior: Posterior) -> tuple[Floats, Floats]:
    chain = posterior.chain
    weights = posterior.one_way / np.maximum(TINY, posterior.one_way.sum(0))
    return (
        _mixed(chain.before * chain.leave * posterior.grid.cells, weights),
        _mixed(chain.arrive * chain.after * posterior.grid.cells, weights),
    )


def _two(posterior: Posterior, pairs: Sequence[tuple[int, int, float]]) -> Floats:
    """Return them by pair, part and level."""
    first, second = (
        np.array([pair[number] for pair in pairs], dtype=np.int64) for number in (0, 1)
    )
    chain, share = posterior.chain, posterior.any_way[:, None]
    middle = chain.middle(first, second)
    arrive, leave = chain.arrive[:, first], chain.leave[:, second]
    cells = posterior.grid.cells
    parts = (
        chain.before[:, first] * led(middle * leave * cells, posterior.steps, posterior.kinds),
        arrive * middle * leave,
        led(arrive * middle * cells, posterior.steps, posterior.kinds) * chain.after[:, second],
    )
    return np.stack([_mixed(part * cells, share) for part in parts], axis=1)


def _mixed(parts: Floats, weights: Floats) -> Floats:
    shares = parts / np.maximum(TINY, parts.sum(-1, keepdims=True))
    mixed: Floats = (shares * weights[..., None]).sum(0)
    total: Floats = mixed / np.maximum(TINY, mixed.sum(-1, keepdims=True))
    return total


def _entropy(table: Floats) -> Floats:
    return -np.asarray((table * np.log2(np.maximum(table, TINY))).sum(-1))


MANY = 4  # runs of one candidate: then those of another come between them
CANARY = 16  # runs after which an end is measured again in any case
MANY_BUILDS = 5  # times those of plain halving
LEAST_BITS = 1e-6
IDLE_BITS = 1e-4  # where no step is likely anyway
SETTLED_BITS = 1e-3  # a run, once nothing is left to build: a thousand would settle one question


@dataclass(frozen=True, kw_only=True)
class NextRun:
    """Measure ``candidate``; ``reference`` shares its turn if the machine's speed changes."""

    candidate: str
    reference: str | None
    gain: float  # bits per run
    why: str


def choose(
    beliefs: Beliefs,
    costs: Costs,
    budget: Budget,
    *,
    all_steps: bool = False,
    under_way: frozenset[str] = frozenset(),
) -> NextRun | None:
    """Return None if no run would tell more than what is under way."""
    options = list(_options(beliefs, budget, under_way))
    gains = bits(beliefs.posterior, options, all_steps=all_steps)
    gains[[_name(beliefs, option) in under_way for option in options]] = 0.0
    failing = [beliefs.history.failure_share(_name(beliefs, option)) for option in options]
    gains *= 1.0 - np.array(failing)[:, None]
    first = np.array([_first_s(beliefs, costs, option) for option in options])
    seconds = first[:, None] + np.array(BATCHES)[None, :] * costs.run_s
    worth = gains / seconds
    best, batch = np.unravel_index(int(np.argmax(worth)), worth.shape)
    least = IDLE_BITS if beliefs.posterior.none > 0.5 else LEAST_BITS
    if gains[best, batch] < least:
        return None
    option = options[int(best)]
    with_reference = costs.paired or BATCHES[int(batch)] >= MANY or shared(beliefs)
    rate = float(gains[best, batch]) / BATCHES[int(batch)]
    splits_gap = not any(isinstance(option, Split) for option in options)
    if splits_gap and rate < SETTLED_BITS and beliefs.posterior.none < 0.5:
        return None
    return NextRun(
        candidate=_name(beliefs, option),
        reference=_reference(beliefs, option, options, worth) if with_reference else None,
        gain=rate,
        why=_why(beliefs, option, rate),
    )


def most_builds(beliefs: Beliefs) -> float:
    """Return how many settle a line, unless its builds differ by themselves."""
    return MANY_BUILDS * math.log2(len(beliefs.line.names))


def lost_in_builds(beliefs: Beliefs) -> str:
    """Return why still more builds would not settle it, once there are many; else empty.

    Where builds of one source differ by more than the error of their runs, only the average over
    builds tells, and next to a step there may be none to average.
    """
    posterior = beliefs.posterior
    builds = len(posterior.runs.positions)
    if builds < most_builds(beliefs):
        return ""
    if posterior.scatter < posterior.noise * float(np.median(posterior.runs.errors)):
        return ""
    return (
        f"builds of one source differ by about {100 * math.expm1(posterior.scatter):.1f} % by "
        f"themselves, and {builds} builds did not settle it: several builds of each suspect "
        "would tell (`bisect commits` proves with them)"
    )


def canary_due(beliefs: Beliefs) -> bool:
    """Return whether neither end was among the latest runs."""
    runs = beliefs.posterior.runs
    latest = runs.owner[-CANARY:]
    return len(latest) == CANARY and not bool(np.isin(latest, [0, len(runs.positions) - 1]).any())


def session_unknown(beliefs: Beliefs) -> bool:
    """Whether a session after the first has not measured both ends yet: its offset is not known."""
    runs = beliefs.posterior.runs
    latest = runs.owner[runs.sessions == runs.sessions[-1]]
    return bool(runs.sessions[-1] > 0 and not np.isin([0, len(runs.positions) - 1], latest).all())


def _options(beliefs: Beliefs, budget: Budget, under_way: Collection[str]) -> Iterator[int | Split]:
    yield from range(len(beliefs.posterior.runs.positions))
    places = [beliefs.line.index[name] for name in under_way]
    if budget.may_build(beliefs.history):
        for gap in range(beliefs.posterior.gaps):
            middle = beliefs.split(gap, places)
            if middle is not None:
                yield middle


def _position(beliefs: Beliefs, option: int | Split) -> int:
    if isinstance(option, Split):
        return option.position
    return int(beliefs.posterior.runs.positions[option])


def _name(beliefs: Beliefs, option: int | Split) -> str:
    return beliefs.line.names[_position(beliefs, option)]


def _first_s(beliefs: Beliefs, costs: Costs, option: int | Split) -> float:
    return costs.first_s(_name(beliefs, option)) if isinstance(option, Split) else 0.0


def shared(beliefs: Beliefs) -> bool:
    """Whether a run says more in a turn with another: the machine's speed changes, or several.

    A run alone on a machine that shares no candidate with the others says nothing, however often.
    """
    runs = beliefs.posterior.runs
    return bool(np.any(runs.scales > 1)) or len(runs.doubts) > 1 or runs.apart


def _reference(
    beliefs: Beliefs, option: int | Split, options: Sequence[int | Split], worth: Floats
) -> str:
    """Return the end, other than the one asked about, that tells more itself.

    What shares its turns with an end is known apart from all else. A chain of neighbours is known
    to its neighbours alone, and the posterior takes what is known of each for independent.
    """
    last = len(beliefs.posterior.runs.positions) - 1
    ends = [end for end in (0, last) if end != option]
    best = max(ends, key=lambda end: (float(worth[options.index(end)].max()), -end))
    return _name(beliefs, best)


def _why(beliefs: Beliefs, option: int | Split, rate: float) -> str:
    name = _name(beliefs, option)
    if isinstance(option, Split):
        low, high = beliefs.posterior.ends(option.gap)
        names = beliefs.line.names
        chance = 100 * float(beliefs.posterior.stepped[option.gap])
        return (
            f"{name} halves {names[low]} to {names[high]}, which contain a step with "
            f"{chance:.0f} %: "
            f"{rate:.2f} bits a run"
        )
    return f"{name} again: {rate:.2f} bits a run"
