"""What each factor has of a difference: Shapley shares of the logarithm of a cost. Pure.

An arm is named by the factors that are as on the slow side: none is the fast side, all the slow
one. To go from one to the other, the factors are changed one after the other. A factor's share is
what the cost changes by at its step, as a mean over all orders whose arms were measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtri, stdtrit

from dsharness.model import Value
from dsresults.compare.comparison_table import Estimate

State = frozenset[str]  # the factors that are as on the slow side
Logs = Mapping[State, float]  # of the costs of one turn
Picks = NDArray[np.int64]  # turns drawn with replacement, a row for each time

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 1  # the same turns give the same intervals
LEAST_TURNS = 2
NOTHING = 1e-9  # a smaller logarithm is rounding


class FactorShare(Value):
    """What a factor multiplies the cost by, and its part of the logarithm of the whole ratio."""

    factor: str
    ratio: Estimate
    percent: float = Field(description="of the log ratio; below 0: it works against the difference")


class Interaction(Value):
    """What two factors multiply the cost by together, after what each does alone."""

    factors: tuple[str, str]
    ratio: Estimate


class FactorShares(Value):
    """A whole difference; the shares multiplied by what is unexplained are the total."""

    turns: int
    confidence: float = CONFIDENCE
    total: Estimate = Field(description="cost of the slow side over that of the fast one")
    differs: bool = Field(description="whether the total's interval leaves out 1")
    shares: tuple[FactorShare, ...] = Field(
        description="none without a difference that can be parted"
    )
    unexplained: float = Field(description="a factor: 1 where the shares explain everything")
    interactions: tuple[Interaction, ...] = ()
    orders: tuple[tuple[str, ...], ...] = Field(
        description="in which the factors could be changed, one after the other"
    )
    all_orders: int

    @property
    def whole(self) -> bool:
        """Whether every order was measured."""
        return len(self.orders) == self.all_orders


def factor_shares(factors: Sequence[str], turns: Sequence[Logs]) -> FactorShares:
    """Attribute the difference between both sides; each turn has the same arms."""
    if len(turns) < LEAST_TURNS:
        raise ValueError(f"shares need {LEAST_TURNS} turns, not {len(turns)}")
    arms = turns[0].keys()
    orders = [order for order in permutations(factors) if set(_arms(order)) <= arms]
    picks = _resampled(len(turns))
    total = _estimate([_total(factors, turn) for turn in turns], picks)
    low, high = total.interval or (0.0, math.inf)
    differs = low > math.exp(NOTHING) or high < math.exp(-NOTHING)
    logs = {
        factor: [_share(factor, orders, turn) for turn in turns]
        for factor in (factors if differs and orders else ())
    }
    total_log = math.log(total.value)
    means = {factor: statistics.fmean(values) for factor, values in logs.items()}
    return FactorShares(
        turns=len(turns),
        total=total,
        differs=differs,
        shares=tuple(
            FactorShare(
                factor=factor,
                ratio=_estimate(values, picks),
                percent=100 * means[factor] / total_log,
            )
            for factor, values in logs.items()
        ),
        unexplained=1.0 if logs else total.value,
        interactions=tuple(_interactions(factors, turns, picks)) if logs else (),
        orders=tuple(orders),
        all_orders=math.factorial(len(factors)),
    )


def _arms(order: Sequence[str]) -> list[State]:
    """From the fast side to the slow one, one factor after the other."""
    return [frozenset(order[:count]) for count in range(len(order) + 1)]


def _total(factors: Sequence[str], turn: Logs) -> float:
    return turn[frozenset(factors)] - turn[frozenset()]


def _share(factor: str, orders: Sequence[Sequence[str]], turn: Logs) -> float:
    steps = (
        turn[after] - turn[before]
        for order in orders
        for before, after in pairwise(_arms(order))
        if factor in after - before
    )
    return math.fsum(steps) / len(orders)


def _interactions(
    factors: Sequence[str], turns: Sequence[Logs], picks: Picks
) -> Iterator[Interaction]:
    """Of each pair, as a mean over the states of the other factors; where all were measured."""
    for first, second in combinations(factors, 2):
        further = [factor for factor in factors if factor not in {first, second}]
        around = [
            frozenset(subset)
            for n in range(len(further) + 1)
            for subset in combinations(further, n)
        ]
        corners = [state | {first, second} for state in around]
        if all(
            corner - corner_part in turns[0]
            for corner in corners
            for corner_part in _gone(first, second)
        ):
            logs = [math.fsum(_both(turn, first, second, around)) / len(around) for turn in turns]
            yield Interaction(factors=(first, second), ratio=_estimate(logs, picks))


def _gone(first: str, second: str) -> tuple[State, ...]:
    return frozenset(), frozenset({first}), frozenset({second}), frozenset({first, second})


def _both(turn: Logs, first: str, second: str, around: Sequence[State]) -> Iterator[float]:
    for arm in around:
        yield from (
            turn[arm],
            -turn[arm | {first}],
            -turn[arm | {second}],
            turn[arm | {first, second}],
        )


def _resampled(turns: int) -> Picks:
    """Turns drawn with replacement: the same for all that is estimated."""
    return np.random.default_rng(SEED).integers(turns, size=(RESAMPLES, turns))


def _estimate(logs: Sequence[float], picks: Picks) -> Estimate:
    """The mean with its bootstrap interval, as factors.

    The percentiles of few turns are too near, and resampling cannot go beyond the extremes: their
    distance is stretched by as much as Student's distribution is wider than the normal one.
    """
    mean, turns = statistics.fmean(logs), len(logs)
    means = np.sort(np.asarray(logs)[picks].mean(axis=1))
    cut = int(RESAMPLES * (1 - CONFIDENCE) / 2)
    level = (1 + CONFIDENCE) / 2
    stretch = float(stdtrit(turns - 1, level) / ndtri(level)) * math.sqrt(turns / (turns - 1))
    low, high = (mean + stretch * (end - mean) for end in means[[cut, -1 - cut]].tolist())
    return Estimate(value=math.exp(mean), interval=(math.exp(low), math.exp(high)))
