"""A user's options for a search: which rule, how sure, which budget. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.search.bayes.prior import Belief
    from dsbisect.search.question import Search
    from dsharness.model import Workload

SearchName = Literal["statistical", "plain"]

# Measured on two cores (docs/search.md); figures to plan with, not a promise.
RUN_OVERHEAD_S = 1.3  # around the load itself
START_S = 1.5  # a server whose golden state is ready
CONFIRMED = 2  # runs of both neighbours: effects, and what is left to explain, rest on these
LEAST_LEVEL, MOST_LEVEL = 0.5, 0.9999


def run_s(workload: Workload, *, paired: bool) -> float:
    """What one sample takes; the two of a duet share their time."""
    return (workload.duration_s + RUN_OVERHEAD_S) / (2 if paired else 1)


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Everything about a search except what it searches."""

    name: SearchName = "statistical"
    level: float = 0.95  # this and the next are the same in the search: a test compares them
    max_runs: int = 2000
    max_builds: int | None = None
    max_hours: float | None = None
    paired: bool = False  # this machine measures two candidates at the same time

    def __post_init__(self) -> None:
        if not LEAST_LEVEL <= self.level <= MOST_LEVEL:
            raise UsageError(
                f"--level {self.level:g}: must be from {LEAST_LEVEL:g} to {MOST_LEVEL:g}",
                hint="0.95 is right 19 times out of 20",
            )
        for option, value in (
            ("--max-runs", self.max_runs),
            ("--max-builds", self.max_builds),
            ("--max-hours", self.max_hours),
        ):
            if value is not None and not value > 0:
                raise UsageError(f"{option} {value:g}: must be above 0", hint="leave it out")

    def search(
        self,
        workload: Workload,
        *,
        prepare_s: float = 0.0,
        ready: frozenset[str] = frozenset(),
        prior: Mapping[str, float] | None = None,
        survey_up_to: int = 0,
        belief: Belief | None = None,
    ) -> Search:
        """The search for candidates that take this long to be prepared."""
        # `--help` must not import numpy and scipy.
        from dsbisect.search.bayes.bayes_search import Bayes  # noqa: PLC0415
        from dsbisect.search.bayes.belief import Certainty  # noqa: PLC0415
        from dsbisect.search.bayes.prior import Belief  # noqa: PLC0415
        from dsbisect.search.bayes.step_cost import Budget, Costs  # noqa: PLC0415
        from dsbisect.search.plain.halving_search import Halving  # noqa: PLC0415

        if self.name == "plain":
            return Halving()
        return Bayes(
            certainty=Certainty(
                level=self.level, real=max(Certainty.real, self.level), least_runs=CONFIRMED
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
            belief=belief or Belief(),
            survey_up_to=survey_up_to,
        )
