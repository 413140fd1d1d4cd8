"""Probabilities before anything is measured. Core pure logic, no I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer

from dsharness.measure.metric import Metric
from dssearch.question import History

# Of counts, which vary by 1 to 5 % (docs/verdicts.md).
EXACT_EFFECT, EXACT_NOISE = 1.1, 0.03
# Of instructions, which vary by 0.06 % where nothing disturbs.
STEADY_EFFECT, STEADY_NOISE = 1.001, 0.002


LAYOUT_WIDTH = 0.5  # of its distance: how alike the builds of one layout are


class Scatter(NamedTuple):
    """By how much two builds of one source may differ, however often they are run."""

    size: float  # a deviation of logs
    chance: float
    layouts: bool = False  # a build lies about one size above its source or one below

    @property
    def width(self) -> float:
        """The deviation around each place where builds lie."""
        return LAYOUT_WIDTH * self.size if self.layouts else self.size


def scatters(*sizes: tuple[float, float]) -> tuple[Scatter, ...]:
    """Return Gaussian ones: sizes with their chances."""
    return tuple(Scatter(size=size, chance=chance) for size, chance in sizes)


LAYOUTS = Scatter(size=0.03, chance=0.08, layouts=True)  # 4.7 to 8 % apart where they were seen


@dataclass(frozen=True, kw_only=True)
class Belief:
    """Chances of each kind of history, and the sizes of effects and noise that are plausible.

    Effects and noise are on a log scale, so a constant factor on all values changes nothing.
    """

    none: float = 0.3  # that a range holds no step at all is common
    two: float = 0.15
    ramp: float = 0.03  # many small steps in the same direction
    smallest_effect: float = 1.005  # less than this is no effect
    least_in_noise: float = 0.5  # nor is less than this many times the noise of one run
    asked_effect: float | None = None  # what matters to the user: the prior reaches down to it
    least_in_scatter: float = 2.0  # nor what builds of one source differ by anyway
    largest_effect: float = 1000.0
    expected_effect: float | None = None  # what someone reported: half of all steps are near it
    noise: float = 0.045  # 2 to 5 % in duets or calibrated, 10 to 25 % when not (docs/verdicts.md)
    noise_doubt: float = 0.8  # and it may as well be half or twice that
    least_noise: float = 0.004  # no machine is more quiet
    scatters: tuple[Scatter, ...] = (
        *scatters((0.002, 0.28), (0.008, 0.37), (0.02, 0.18), (0.04, 0.09)),
        LAYOUTS,
    )
    of_source: bool = True  # whether a step is one of sources; else of what was built of them
    odd: float = 0.004  # of one candidate, that it differs from both its neighbours
    tails: tuple[float, ...] = (4.0, 100.0)  # degrees of freedom: heavy, or nearly Gaussian

    @property
    def one(self) -> float:
        return 1 - self.none - self.two - self.ramp

    @property
    def least_log(self) -> float:
        return math.log(self.smallest_effect)

    def least_step(self, noise: float) -> float:
        """Return the log of the smallest step that is possible where one run has that noise."""
        least = max(self.least_log, self.least_in_noise * noise)
        return least if self.asked_effect is None else min(least, math.log(self.asked_effect))

    @property
    def of_counts(self) -> Belief:
        """The same of what is counted until two counts agree: no build differs by itself."""
        return replace(
            self,
            smallest_effect=min(self.smallest_effect, EXACT_EFFECT),
            noise=min(self.noise, EXACT_NOISE),
            scatters=min(self.scatters, EXACT_SCATTERS, key=_largest),
        )

    @property
    def of_instructions(self) -> Belief:
        """The same of a count that hardly varies: builds of one source execute nearly the same."""
        return replace(
            self,
            smallest_effect=min(self.smallest_effect, STEADY_EFFECT),
            noise=STEADY_NOISE,
            noise_doubt=1.0,
            least_noise=STEADY_NOISE / 10,
            scatters=STEADY_SCATTERS,
        )

    def of(self, metric: Metric) -> Belief:
        """Return the same as far as values of that metric vary otherwise than times."""
        if metric.exact:
            return self.of_counts
        return self.of_instructions if metric.steady else self

    @property
    def expected_log(self) -> float | None:
        return None if self.expected_effect is None else math.log(self.expected_effect)

    def log_noise_prior(self, noise: float) -> float:
        """Return (2) up to a constant."""
        return -0.5 * (math.log(noise / self.noise) / self.noise_doubt) ** 2

    @property
    def most_log(self) -> float:
        return math.log(self.largest_effect)


STEADY_SCATTERS = scatters((0.0005, 0.5), (0.002, 0.3), (0.008, 0.2))
EXACT_SCATTERS = scatters((0.002, 0.7), (0.01, 0.3))


def _largest(kinds: tuple[Scatter, ...]) -> float:
    return max(builds.size for builds in kinds)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds, as far as they are known before the search; a log keeps them for the replay."""

    run_s: float = 15.0
    start_s: float = 2.0  # a server of a candidate that was not measured yet
    prepare_s: float = 40.0  # and its build, image and directory, unless they are ready
    ready: Annotated[frozenset[str], PlainSerializer(sorted)] = frozenset()
    paired: bool = False  # two candidates run at the same time, for the price of one

    def first_s(self, candidate: str) -> float:
        """Return what comes before the first run of a candidate."""
        return self.start_s + (0.0 if candidate in self.ready else self.prepare_s)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The search ends with the best set so far when one of these is spent."""

    runs: int = 2000
    builds: int | None = None  # different candidates
    seconds: float | None = None

    def spent(self, history: History, costs: Costs, *, under_way: int = 0) -> str | None:
        """Which part is used up, with so many runs under way, in words; None while all go on."""
        runs = under_way + sum(len(group) for group in history.samples.values())
        if runs >= self.runs:
            return f"the budget of {self.runs} runs is spent"
        if self.seconds is not None and self.used_s(history, costs) >= self.seconds:
            return f"the budget of {self.seconds:.0f} seconds is spent"
        return None

    def used_s(self, history: History, costs: Costs) -> float:
        """Count by the costs that were foreseen: a replay comes to the same figure."""
        runs = sum(len(group) for group in history.samples.values())
        return runs * costs.run_s + sum(costs.first_s(name) for name in _measured(history))

    def may_build(self, history: History) -> bool:
        return self.builds is None or len(_measured(history)) < self.builds


def _measured(history: History) -> list[str]:
    return [name for name, group in history.samples.items() if group]
