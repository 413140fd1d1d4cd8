"""A user's options for a search: how sure, of what, for which budget. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsharness.model import Workload
    from dssearch.bayes.prior import Belief
    from dssearch.question import Search

# Measured on two cores (docs/search.md); figures to plan with, not a promise.
RUN_OVERHEAD_S = 1.3  # around the load itself
START_S = 1.5  # a server whose golden state is ready
LEAST_SCATTER = 0.001  # no two builds are closer
WITNESS_RUNS = 3  # more of each, where the rate cannot tell yet
LEAST_LEVEL, MOST_LEVEL = 0.5, 0.9999
SEEN_PCT, SEEN_RUNS = 10.0, 40  # "no difference" is worth something, in a few minutes


def run_s(workload: Workload, *, paired: bool) -> float:
    """What one sample takes; the two of a duet share their time, and any two that of a start."""
    return (workload.duration_s + RUN_OVERHEAD_S) / (2 if paired else 1) + START_S / 2


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Everything about a search except what it searches."""

    level: float = 0.95  # this and the next are the same in the search: a test compares them
    max_runs: int = 2000
    max_builds: int | None = None
    max_hours: float | None = None
    smallest_pct: float | None = None  # smaller differences don't matter
    expected_pct: float | None = None  # a difference that someone reported
    inside: int = 0  # places to measure before "no difference"
    every: bool = False  # go on for a second step
    seen_pct: float | None = None  # "no difference" waits until a step of this would have been seen
    seen_runs: int | None = None  # at most so many of each end for that
    scatter_pct: float | None = None  # by how much builds of one source differ, if it is known
    paired: bool = False  # this machine measures two candidates at the same time

    def __post_init__(self) -> None:
        if not LEAST_LEVEL <= self.level <= MOST_LEVEL:
            raise UsageError(
                f"--certainty {self.level:g}: must be from {LEAST_LEVEL:g} to {MOST_LEVEL:g}",
                hint="0.95 is right 19 times out of 20",
            )
        for option, value in (
            ("--max-runs", self.max_runs),
            ("--max-builds", self.max_builds),
            ("--max-hours", self.max_hours),
            ("--smallest", self.smallest_pct),
            ("--expected", self.expected_pct),
        ):
            if value is not None and not 0 < value < math.inf:
                raise UsageError(
                    f"{option} {value:g}: must be above 0 and finite", hint="leave it out"
                )
        if self.inside < 0:
            raise UsageError(f"--inside {self.inside}: must not be below 0", hint="leave it out")

    def search(
        self,
        workload: Workload,
        *,
        prepare_s: float = 0.0,
        ready: frozenset[str] = frozenset(),
        prior: Mapping[str, float] | None = None,
        measure_all_up_to: int = 0,
        belief: Belief | None = None,
    ) -> Search:
        """The search for candidates that take this long to be prepared."""
        # `--help` must not import numpy and scipy.
        from dssearch.bayes.bayes_search import Bayes  # noqa: PLC0415
        from dssearch.bayes.belief import Certainty  # noqa: PLC0415
        from dssearch.bayes.prior import (  # noqa: PLC0415
            Belief,
            Budget,
            Costs,
        )

        return Bayes(
            certainty=Certainty(
                level=self.level,
                real=max(Certainty.real, self.level),
                witness_runs=WITNESS_RUNS,
                smallest=self.smallest_log,
                expected=self.expected_log,
                seen_pct=self.seen_pct,
                seen_runs=self.seen_runs,
                inside=self.inside,
                every=self.every,
            ),
            costs=Costs(
                run_s=run_s(workload, paired=self.paired),
                start_s=START_S,
                prepare_s=prepare_s,
                ready=ready,
                paired=self.paired,
            ),
            budget=Budget(
                runs=self.max_runs,
                builds=self.max_builds,
                seconds=None if self.max_hours is None else 3600 * self.max_hours,
            ),
            prior=prior or {},
            belief=self.belief(belief or Belief()),
            survey_up_to=measure_all_up_to,
        )

    @property
    def smallest_log(self) -> float | None:
        """The smallest step to look for, as a log: of an expected difference half is enough."""
        expected = self.expected_log
        return _log(self.smallest_pct) or (None if expected is None else expected / 2)

    @property
    def expected_log(self) -> float | None:
        return _log(self.expected_pct)

    def belief(self, belief: Belief) -> Belief:
        if self.smallest_log is not None:
            belief = replace(belief, asked_effect=math.exp(self.smallest_log))
        if self.expected_pct is not None:
            belief = replace(belief, expected_effect=1 + self.expected_pct / 100)
        if self.every:  # who asks for all steps knows of more than one
            belief = replace(belief, two=2 * belief.two, ramp=belief.ramp / 3)
        if self.scatter_pct is not None:
            from dssearch.bayes.prior import scatters  # noqa: PLC0415

            belief = replace(
                belief, scatters=scatters((max(LEAST_SCATTER, _log(self.scatter_pct) or 0.0), 1.0))
            )
        return belief


def _log(pct: float | None) -> float | None:
    return None if pct is None else math.log1p(pct / 100)
