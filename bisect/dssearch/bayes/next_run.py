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


def hypotheses(found: Posterior) -> list[Hypothesis]:
    """Those that matter; their chances sum to 1."""
    made = [Hypothesis(chance=found.none, levels=_none(found))]
    lower, upper = _one(found)
    single = found.one + np.diag(found.two) + np.diag(found.ramps)
    for gap in np.flatnonzero(single > LEAST):
        levels = np.stack([lower[gap], upper[gap]])
        made.append(Hypothesis(chance=float(single[gap]), levels=levels, steps=(int(gap),)))
    pairs = list(_likeliest(found.two))
    for (first, second, chance), levels in zip(pairs, _two(found, pairs), strict=True):
        made.append(Hypothesis(chance=chance, levels=levels, steps=(first, second)))
    for first, second, chance in _likeliest(found.ramps):
        levels = np.zeros((0, len(found.grid.levels)))
        made.append(Hypothesis(chance=chance, levels=levels, ramp=(first, second)))
    total = sum(each.chance for each in made)
    return [replace(each, chance=each.chance / total) for each in made]


def _likeliest(table: Floats) -> Iterator[tuple[int, int, float]]:
    """Pairs of different gaps."""
    off = np.triu(table, 1)
    order = np.argsort(-off, axis=None, kind="stable")[:PAIRS]
    for first, second in zip(*np.unravel_index(order, off.shape), strict=True):
        if off[first, second] > LEAST:
            yield int(first), int(second), float(off[first, second])


def bits(found: Posterior, options: Sequence[int | Split], *, every: bool = False) -> Floats:
    """For each option (a measured candidate, or a split) and each number of runs in BATCHES.

    Bits about what will be named, (12): whether there is a second step behind a first one that is
    clear tells nothing about the first, unless ``every`` step is asked for.
    """
    wanted = hypotheses(found)
    weights, table = _expected(found, wanted, options, every=every)
    used = np.flatnonzero(weights.sum((0, 1)) > 0)
    weights, table = weights[:, :, used], table[used]
    chance = weights.sum(-1)
    distance = np.subtract.outer(found.grid.levels, found.grid.levels) / found.noise
    result = np.zeros((len(options), len(BATCHES)))
    density = np.exp(-0.5 * distance**2)
    for at in range(len(BATCHES)):
        density = density if at == 0 else density**2  # each batch has twice the runs
        kernel = density * found.grid.cells
        seen = table @ (kernel / kernel.sum(1, keepdims=True))
        each = weights @ seen
        known = _entropy(each / np.maximum(TINY, chance)[:, :, None])
        result[:, at] = _entropy(each.sum(1)) - (chance * known).sum(1)
    buildable = np.array(
        [option.buildable * option.news if isinstance(option, Split) else 1.0 for option in options]
    )
    useful: Floats = _repeated(found, options, np.maximum(0.0, result)) * buildable[:, None]
    return useful * _ordinary(found, options)[:, None]


def _ordinary(found: Posterior, options: Sequence[int | Split]) -> Floats:
    """The chance of each that it is no odd one: one that differs alone tells nothing."""
    top = int(np.argmax(found.stepped))
    odd = found.odd_chances(top if found.stepped[top] > found.none else None)
    return np.array([1.0 if isinstance(o, Split) else max(0.0, 1.0 - odd[o]) for o in options])


def _repeated(found: Posterior, options: Sequence[int | Split], fresh: Floats) -> Floats:
    """What is left of that where a candidate was measured before: (13).

    How far its own build differs from the level of its segment is not known, and its runs cannot
    show it: each is worth less than the one before.
    """
    taken = np.array([0 if isinstance(o, Split) else found.seen.counts[o] for o in options])
    runs, share = np.array(BATCHES), (found.scatter / found.noise) ** 2
    before, after = taken[:, None], taken[:, None] + runs[None, :]
    worth = runs[None, :] / ((1 + share * before) * (1 + share * after))
    # linear below one run
    known = np.concatenate([np.zeros((len(options), 1)), fresh], axis=1)
    at = np.array([0, *BATCHES])
    return np.array([np.interp(x, at, y) for x, y in zip(worth, known, strict=True)])


RAMP = (-1,)  # what every ramp names
NO_GAP = np.iinfo(np.int64).max  # after all others


def _answer(found: Posterior, each: Hypothesis, *, every: bool) -> tuple[int, ...]:
    """The gaps that would be named under it, if it is no ramp."""
    likely = found.stepped
    return each.steps if every else tuple(sorted(each.steps, key=lambda gap: -likely[gap])[:1])


def _expected(
    found: Posterior, wanted: Sequence[Hypothesis], options: Sequence[int | Split], *, every: bool
) -> tuple[Floats, Floats]:
    """How likely each option is to be at each expected level, by what would be named.

    A split parts the answer of its gap in two, which is what it is for.
    """
    sure = [each for each in wanted if each.ramp is None]
    ramps = [each for each in wanted if each.ramp is not None]
    answers = [_answer(found, each, every=every) for each in sure]
    places = {answer: at for at, answer in enumerate(sorted({*answers, *([RAMP] * len(ramps))}))}
    tables = [each.levels for each in sure]
    starts = np.cumsum([0] + [len(levels) for levels in tables])
    # all ramps name the same, so each option has one row for them
    rows = starts[-1] + (len(options) if ramps else 0)
    weights = np.zeros((len(options), 2 * len(places), rows))
    place = np.array([places[answer] for answer in answers])[:, None]
    chance = np.array([each.chance for each in sure])[:, None]
    own = np.arange(len(options))
    # by hypothesis and option: the part it lies on, and the chance that it is on the next one
    gaps = np.array([option.gap if isinstance(option, Split) else option for option in options])
    splits = np.array([option.share if isinstance(option, Split) else 0.0 for option in options])
    steps = _padded([each.steps for each in sure])
    part = starts[:-1, None] + (steps < gaps).sum(1)
    share = np.where((steps == gaps).any(1), splits, 0.0)
    weights[own, place, part] = chance * (1 - share)
    hypothesis, option = np.nonzero(share)
    parted = (_padded(answers) == gaps).any(1)
    other = (place + len(places) * parted)[hypothesis, option]
    weights[option, other, part[hypothesis, option] + 1] = (chance * share)[hypothesis, option]
    if ramps:
        chances = np.array([each.chance for each in ramps])
        weights[own, places[RAMP], starts[-1] + own] = chances.sum()
        levels = _on_ramps(found, ramps, options)
        tables.append(np.einsum("h,hol->ol", chances / chances.sum(), levels))
    return weights, np.concatenate(tables)


def _padded(gaps: Sequence[tuple[int, ...]]) -> Ints:
    """One row for each, as many columns as the longest has, and an axis for the options."""
    width = max(map(len, gaps))
    filled = [(*each, *[NO_GAP] * (width - len(each))) for each in gaps]
    return np.array(filled, dtype=np.int64).reshape(len(gaps), width, 1)


def _on_ramps(
    found: Posterior, ramps: Sequence[Hypothesis], options: Sequence[int | Split]
) -> Floats:
    """Ramp, option, level: where each option lies on each ramp."""
    first, last = (np.array([each.ramp[at] for each in ramps if each.ramp]) for at in (0, 1))
    positions = found.seen.positions
    start = ((positions[first] + positions[first + 1] - 1) / 2)[:, None]
    end = ((positions[last] + 1 + positions[last + 1]) / 2)[:, None]
    places = np.array(
        [o.position if isinstance(o, Split) else positions[o] for o in options], dtype=np.float64
    )
    part = np.clip((places - start) / (end - start), 0.0, 1.0)
    sizes = found.ramp_sizes[first, last][:, None]
    middle = found.ramp_levels[first, last][:, None] + part * sizes
    counts = found.seen.counts
    error = math.hypot(found.noise / math.sqrt(counts.mean()), found.scatter) / 2
    error = max(error, found.grid.width)
    density = np.exp(-0.5 * ((found.grid.levels - middle[:, :, None]) / error) ** 2)
    density = density * found.grid.cells + TINY
    shares: Floats = density / density.sum(-1, keepdims=True)
    return shares


def _none(found: Posterior) -> Floats:
    table = found.chain.sums[:, -1]
    likely = np.exp(table - table.max(-1, keepdims=True)) * found.grid.cells
    return _mixed(likely, found.any_way)[None, :]


def _one(found: Posterior) -> tuple[Floats, Floats]:
    chain = found.chain
    weights = found.one_way / np.maximum(TINY, found.one_way.sum(0))
    return (
        _mixed(chain.before * chain.leave * found.grid.cells, weights),
        _mixed(chain.arrive * chain.after * found.grid.cells, weights),
    )


def _two(found: Posterior, pairs: Sequence[tuple[int, int, float]]) -> Floats:
    """Pair, part, level."""
    first, second = (np.array([pair[at] for pair in pairs], dtype=np.int64) for at in (0, 1))
    chain, share = found.chain, found.any_way[:, None]
    middle = chain.middle(first, second)
    arrive, leave = chain.arrive[:, first], chain.leave[:, second]
    cells = found.grid.cells
    parts = (
        chain.before[:, first] * led(middle * leave * cells, found.steps, found.kinds),
        arrive * middle * leave,
        led(arrive * middle * cells, found.steps, found.kinds) * chain.after[:, second],
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
    every: bool = False,
    under_way: frozenset[str] = frozenset(),
) -> NextRun | None:
    """None if no run would tell more than what is under way."""
    options = list(_options(beliefs, budget, under_way))
    gains = bits(beliefs.posterior, options, every=every)
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
    built = not any(isinstance(each, Split) for each in options)
    if built and rate < SETTLED_BITS and beliefs.posterior.none < 0.5:
        return None
    return NextRun(
        candidate=_name(beliefs, option),
        reference=_reference(beliefs, option, options, worth) if with_reference else None,
        gain=rate,
        why=_why(beliefs, option, rate),
    )


def most_builds(beliefs: Beliefs) -> float:
    """So many settle a line, unless its builds differ by themselves."""
    return MANY_BUILDS * math.log2(len(beliefs.line.names))


def lost_in_builds(beliefs: Beliefs) -> str:
    """Why still more builds would not settle it, once there are many; else empty.

    Where builds of one source differ by more than the error of their runs, only the average over
    builds tells, and next to a step there may be none to average.
    """
    found = beliefs.posterior
    builds = len(found.seen.positions)
    if builds < most_builds(beliefs):
        return ""
    if found.scatter < found.noise * float(np.median(found.seen.errors)):
        return ""
    return (
        f"builds of one source differ by about {100 * math.expm1(found.scatter):.1f} % by "
        f"themselves, and {builds} builds did not settle it: several builds of each suspect "
        "would tell (`bisect commits` proves with them)"
    )


def canary_due(beliefs: Beliefs) -> bool:
    """Whether neither end was among the latest runs."""
    seen = beliefs.posterior.seen
    latest = seen.owner[-CANARY:]
    return len(latest) == CANARY and not bool(np.isin(latest, [0, len(seen.positions) - 1]).any())


def session_unknown(beliefs: Beliefs) -> bool:
    """Whether a session after the first has not measured both ends yet: its offset is not known."""
    seen = beliefs.posterior.seen
    here = seen.owner[seen.sessions == seen.sessions[-1]]
    return bool(seen.sessions[-1] > 0 and not np.isin([0, len(seen.positions) - 1], here).all())


def _options(beliefs: Beliefs, budget: Budget, under_way: Collection[str]) -> Iterator[int | Split]:
    yield from range(len(beliefs.posterior.seen.positions))
    places = [beliefs.line.index[name] for name in under_way]
    if budget.may_build(beliefs.history):
        for gap in range(beliefs.posterior.gaps):
            found = beliefs.split(gap, places)
            if found is not None:
                yield found


def _position(beliefs: Beliefs, option: int | Split) -> int:
    if isinstance(option, Split):
        return option.position
    return int(beliefs.posterior.seen.positions[option])


def _name(beliefs: Beliefs, option: int | Split) -> str:
    return beliefs.line.names[_position(beliefs, option)]


def _first_s(beliefs: Beliefs, costs: Costs, option: int | Split) -> float:
    return costs.first_s(_name(beliefs, option)) if isinstance(option, Split) else 0.0


def shared(beliefs: Beliefs) -> bool:
    """Whether a run says more in a turn with another: the machine's speed changes, or several.

    A run alone on a machine that shares no candidate with the others says nothing, however often.
    """
    seen = beliefs.posterior.seen
    return bool(np.any(seen.scales > 1)) or len(seen.doubts) > 1 or seen.apart


def _reference(
    beliefs: Beliefs, option: int | Split, options: Sequence[int | Split], worth: Floats
) -> str:
    """Return the end, other than the one asked about, that tells more itself.

    What shares its turns with an end is known apart from all else. A chain of neighbours is known
    to its neighbours alone, and the posterior takes what is known of each for independent.
    """
    last = len(beliefs.posterior.seen.positions) - 1
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
