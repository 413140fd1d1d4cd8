"""The noise of a run, from a pilot: one system measured against itself. Core pure logic."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from dsharness.errors import InconclusiveError, UsageError
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import COST, RATE
from dsharness.model import Sample
from dssearch.bayes.track import Floats

LEAST_PILOT = 4
PAIR = 2  # runs of one turn
SURE = 0.9  # of the noise's interval


@dataclass(frozen=True, kw_only=True)
class RunNoise:
    """Noise of made-up runs, on the log scale: Gaussian, and the rate follows the cost in part."""

    cost: float
    rate_slope: float = 1.0
    rate_rest: float = 0.0
    pace: float = 0.0  # the steps of the machine's speed from turn to turn; a turn's runs share it


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Standard deviation of the log of one run, its interval, and the number of runs."""

    size: float
    low: float
    high: float
    runs: int = 0
    freedom: int = 0  # of the estimate; 0: it is certain
    rate_slope: float = 1.0  # by how much a run's rate follows its cost
    rate_rest: float = 0.0  # and how much it varies by itself
    pace: float = 0.0  # by how much the machine's speed changes from turn to turn

    @classmethod
    def named(cls, pct: float) -> Noise:
        """Return a noise that a user names; nothing was measured."""
        if not 0 < pct < math.inf:
            raise UsageError(
                f"--noise-pct {pct:g}: must be above 0 and finite", hint="in per cent: 5"
            )
        size = math.log1p(pct / 100)
        return cls(size=size, low=size, high=size, pace=size)

    @classmethod
    def estimated(cls, size: float, freedom: int, runs: int) -> Noise:
        """Return a noise as it was estimated, with so many degrees of freedom."""
        tail = (1 - SURE) / 2
        low, high = (
            size * math.sqrt(freedom / float(chdtri(freedom, p))) for p in (tail, 1 - tail)
        )
        return cls(size=size, low=low, high=high, runs=runs, freedom=freedom)

    def drawn(self, seed: int) -> RunNoise:
        """Return one of the noises that the pilot leaves possible."""
        times = 1.0
        if self.freedom > 0:
            chance = np.random.default_rng([seed, self.freedom])
            times = math.sqrt(self.freedom / float(chance.chisquare(self.freedom)))
        return RunNoise(
            cost=times * self.size,
            rate_slope=self.rate_slope,
            rate_rest=times * self.rate_rest,
            pace=self.pace,
        )


def noise_of(samples: Sequence[Sample], metric: Metric = COST) -> Noise:
    """Return the noise that a pilot of one candidate shows."""
    usable = [sample for sample in samples if sample.valid]
    costs = [value for sample in usable if (value := metric.slowness(sample))]
    values = costs if len(costs) == len(usable) else [v for s in usable if (v := RATE.slowness(s))]
    if len(values) < LEAST_PILOT:
        failed = [", ".join(sample.invalid) for sample in samples if not sample.valid]
        raise InconclusiveError(
            f"a plan needs {LEAST_PILOT} usable runs, the pilot has {len(values)}"
            + (f"; refused: {failed[0]}" if failed else ""),
            hint="raise --runs, or find out why runs fail: `dsbisect list answers`",
        )
    pilot = Pilot(turns=[sample.turn for sample in usable])
    logs = [math.log(value) for value in values]
    own, freedom = pilot.own(logs)
    noise = pilot.noise(logs)
    rates = [math.log(rate) for sample in usable if (rate := RATE.slowness(sample))]
    if len(rates) != len(logs) or values is not costs or noise.size == 0:
        return noise
    rate_deviations, _ = pilot.own(rates)
    slope = float(own @ rate_deviations / (own @ own))
    remainder = rate_deviations - slope * own
    rate_rest = math.sqrt(float(remainder @ remainder) / (freedom - 1))
    return replace(noise, rate_slope=slope, rate_rest=rate_rest)


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """The runs of a pilot, all of one system: what differs within a turn of two is noise alone."""

    turns: Sequence[int]

    def own(self, logs: Sequence[float]) -> tuple[Floats, int]:
        """What is each run's own, without the machine's speed if turns tell it, and its freedom."""
        pairs = self._pairs(logs)
        if len(pairs) >= LEAST_PILOT:
            return (pairs[:, 1] - pairs[:, 0]) / math.sqrt(PAIR), len(pairs)
        rests: Floats = np.array(logs, dtype=np.float64) - statistics.fmean(logs)
        return rests, len(logs) - 1

    def noise(self, logs: Sequence[float]) -> Noise:
        """Return it with the steps of the machine's speed, beyond what noise makes of them."""
        (own, freedom), pairs = self.own(logs), self._pairs(logs)
        square = float(own @ own) / freedom
        noise = Noise.estimated(math.sqrt(square), freedom=freedom, runs=len(logs))
        if len(pairs) < LEAST_PILOT:
            return noise
        steps = float(np.mean(np.diff(pairs.mean(1)) ** 2))
        return replace(noise, pace=math.sqrt(max(0.0, steps - square)))

    def _pairs(self, logs: Sequence[float]) -> Floats:
        groups: dict[int, list[float]] = {}
        for turn, log in zip(self.turns, logs, strict=True):
            groups.setdefault(turn, []).append(log)
        pairs = [group for _, group in sorted(groups.items()) if len(group) == PAIR]
        return np.array(pairs, dtype=np.float64).reshape(-1, PAIR)
