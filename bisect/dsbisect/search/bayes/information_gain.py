"""How many bits about the step a run would bring. Core pure logic, no I/O.

A run of a candidate tells hypotheses apart as far as they expect different values of it. What
they expect is smeared by what is not known: the levels (so a reference can be worth more than the
candidate in question) and the noise of that many runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsbisect.search.bayes.gap_split import Split
from dsbisect.search.bayes.posterior import Posterior
from dsbisect.search.bayes.track import TINY, Floats

BATCHES = (1, 2, 4, 8, 16, 32)
LEAST = 1e-4  # hypotheses less likely than this decide nothing
PAIRS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Expectations:
    """Each hypothesis with the levels it expects between its steps."""

    chance: Floats
    steps: tuple[tuple[int, ...], ...]  # the gaps that hold its steps
    levels: tuple[Floats, ...]  # segment, level


def expectations(found: Posterior) -> Expectations:
    chance, steps, levels = [found.none], [()], [_none(found)]
    lower, upper = _one(found)
    single = found.one + np.diag(found.two)
    kinds: list[tuple[int, ...]] = list(steps)
    for gap in np.flatnonzero(single > LEAST):
        chance.append(float(single[gap]))
        kinds.append((int(gap),))
        levels.append(np.stack([lower[gap], upper[gap]]))
    off = np.triu(found.two, 1)
    order = np.argsort(-off, axis=None, kind="stable")[:PAIRS]
    for first, second in zip(*np.unravel_index(order, off.shape), strict=True):
        if off[first, second] > LEAST:
            chance.append(float(off[first, second]))
            kinds.append((int(first), int(second)))
            levels.append(_two(found, int(first), int(second)))
    total = np.array(chance)
    return Expectations(chance=total / total.sum(), steps=tuple(kinds), levels=tuple(levels))


def bits(found: Posterior, wanted: Expectations, options: Sequence[int | Split]) -> Floats:
    """For each option (a measured candidate, or a split) and each number of runs in BATCHES.

    Bits about what will be named: whether there is a second step behind a first one that is
    clear tells nothing about the first.
    """
    weights = _weights(wanted, options, _answers(found, wanted))
    table = np.concatenate(wanted.levels)
    used = np.flatnonzero(weights.sum((0, 1)) > 0)
    weights, table = weights[:, :, used], table[used]
    chance = weights.sum(-1)
    distance = np.subtract.outer(found.grid.levels, found.grid.levels) / found.noise
    result = np.zeros((len(options), len(BATCHES)))
    for at, runs in enumerate(BATCHES):
        kernel = np.exp(-0.5 * runs * distance**2)
        seen = table @ (kernel / kernel.sum(1, keepdims=True))
        each = weights @ seen
        known = _entropy(each / np.maximum(TINY, chance)[:, :, None])
        result[:, at] = _entropy(each.sum(1)) - (chance * known).sum(1)
    hope = np.array([option.hope if isinstance(option, Split) else 1.0 for option in options])
    useful: Floats = _worn(found, options, np.maximum(0.0, result)) * hope[:, None]
    return useful


def _worn(found: Posterior, options: Sequence[int | Split], fresh: Floats) -> Floats:
    """What is left of that where a candidate was measured before.

    How far its own build differs from the level of its segment is not known, and its runs cannot
    show it: each is worth less than the one before.
    """
    taken = np.array([0 if isinstance(o, Split) else found.seen.counts[o] for o in options])
    runs, share = np.array(BATCHES), (found.strays / found.noise) ** 2
    before, after = taken[:, None], taken[:, None] + runs[None, :]
    worth = runs[None, :] / ((1 + share * before) * (1 + share * after))
    # linear below one run
    known = np.concatenate([np.zeros((len(options), 1)), fresh], axis=1)
    at = np.array([0, *BATCHES])
    return np.array([np.interp(x, at, y) for x, y in zip(worth, known, strict=True)])


def _answers(found: Posterior, wanted: Expectations) -> list[int]:
    """For each hypothesis the gap that would be named under it; -1 for none."""
    likely = found.stepped
    return [max(steps, key=lambda gap: float(likely[gap]), default=-1) for steps in wanted.steps]


def _weights(wanted: Expectations, options: Sequence[int | Split], answers: list[int]) -> Floats:
    """How likely each option is to be in each segment, by what would be named.

    A split parts the answer of its gap in two, which is what it is for.
    """
    starts = np.cumsum([0] + [len(levels) for levels in wanted.levels])
    places = {answer: at for at, answer in enumerate(sorted(set(answers)))}
    weights = np.zeros((len(options), len(places) + 1, starts[-1]))
    for row, option in enumerate(options):
        for start, steps, chance, answer in zip(
            starts[:-1], wanted.steps, wanted.chance, answers, strict=True
        ):
            before, share = _segment(option, steps)
            place = places[answer]
            weights[row, place, start + before] += chance * (1 - share)
            if share:
                own = isinstance(option, Split) and option.gap == answer
                after = len(places) if own else place
                weights[row, after, start + before + 1] += chance * share
    return weights


def _segment(option: int | Split, steps: tuple[int, ...]) -> tuple[int, float]:
    """After how many steps an option lies for sure, and the chance that it is after one more."""
    if isinstance(option, Split):
        passed = sum(step < option.gap for step in steps)
        return passed, option.share if option.gap in steps else 0.0
    return sum(step < option for step in steps), 0.0


def _none(found: Posterior) -> Floats:
    table = found.chain.sums[:, -1]
    return _mixed(np.exp(table - table.max(-1, keepdims=True)), found.any_noise)[None, :]


def _one(found: Posterior) -> tuple[Floats, Floats]:
    chain = found.chain
    weights = found.one_noise / np.maximum(TINY, found.one_noise.sum(0))
    return (
        _mixed(chain.before * chain.leave, weights),
        _mixed(chain.arrive * chain.after, weights),
    )


def _two(found: Posterior, first: int, second: int) -> Floats:
    chain, share = found.chain, found.any_noise
    middle = chain.middle(first, second)
    arrive, leave = chain.arrive[:, first], chain.leave[:, second]
    parts = (
        chain.before[:, first] * ((middle * leave) @ found.steps),
        arrive * middle * leave,
        ((arrive * middle) @ found.steps) * chain.after[:, second],
    )
    return np.stack([_mixed(part, share) for part in parts])


def _mixed(parts: Floats, weights: Floats) -> Floats:
    shares = parts / np.maximum(TINY, parts.sum(-1, keepdims=True))
    mixed: Floats = (shares * weights[..., None]).sum(0)
    total: Floats = mixed / np.maximum(TINY, mixed.sum(-1, keepdims=True))
    return total


def _entropy(table: Floats) -> Floats:
    return -np.asarray((table * np.log2(np.maximum(table, TINY))).sum(-1))
