"""A search: from everything that was measured to the next step. Core pure logic, no I/O.

The planner asks ``next_step`` again and again and makes turns of what it says. A search keeps no
state, so an interrupted campaign continues by showing it the stored samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import find_metric
from dsharness.model import DECIDER, Boundary, Sample, Starts

# Of a candidate's runs: where fewer are usable, it takes too many to measure it. It is dropped once
# that is so sure; an end, without which a search says less, needs to be surer.
USABLE, SURE, SURE_OF_END = 1 / 3, 0.95, 0.99
ALWAYS = 0.5  # that one always fails: by a crash or a wrong answer, not by its time
MOST_DISTURBED = 20  # runs in a row


@dataclass(frozen=True, kw_only=True)
class Question:
    """The place along ``line`` where the workload turns slow."""

    series_id: str
    line: tuple[str, ...]
    workload_id: str
    settings_id: str
    metric: str = DECIDER  # the one that decides

    @property
    def decider(self) -> Metric:
        return find_metric(self.metric)

    def boundary(self, **facts: object) -> Boundary:
        """An answer to this; without a candidate on either side unless ``facts`` name them."""
        return Boundary.model_validate(
            {
                "series_id": self.series_id,
                "line": self.line,
                "workload_id": self.workload_id,
                "settings_id": self.settings_id,
                "metric": self.metric,
                "before": None,
                "after": None,
                **facts,
            }
        )


@dataclass(frozen=True, kw_only=True)
class History:
    """Everything that is known so far."""

    samples: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    unmeasurable: Mapping[str, str] = field(default_factory=dict)  # candidate -> why
    ends: tuple[str, ...] = ()  # of the line that is searched

    @classmethod
    def of_samples(
        cls, samples: Iterable[Sample], unmeasurable: Mapping[str, str] | None = None
    ) -> History:
        return cls().after(samples, unmeasurable or {})

    def of(self, candidate: str) -> tuple[Sample, ...]:
        return self.samples.get(candidate, ())

    def why_not(self, candidate: str) -> str | None:
        """Return why a candidate cannot be measured; None when it can.

        Failing often is a rate: one that has usable runs is dropped only where its failures are
        clearly more than would let it be measured. A run that was disturbed from outside is
        repeated, and counts against nobody: unless this candidate's alone are disturbed, again and
        again.
        """
        if candidate in self.unmeasurable:
            return self.unmeasurable[candidate]
        runs = [sample for sample in self.of(candidate) if not sample.disturbed]
        failed = [sample for sample in runs if not sample.valid]
        sure = SURE_OF_END if candidate in self.ends else SURE
        always = 0.0 if any(sample.at_least for sample in failed) else ALWAYS
        if failed and hardly_usable(len(runs) - len(failed), len(failed), always) >= sure:
            last, times = failed[-1], f"{len(failed)} of {len(runs)} runs"
            if len(failed) == len(runs):
                times = f"{len(runs)} runs in a row"
            return f"{times} failed: {'; '.join(last.invalid)} ({last.log})"
        return self._why_disturbed(candidate)

    def failure_share(self, candidate: str) -> float:
        """Return the chance that its next run fails, as far as its runs tell."""
        runs = [sample for sample in self.of(candidate) if not sample.disturbed]
        return sum(not sample.valid for sample in runs) / (len(runs) + 1)

    def _why_disturbed(self, candidate: str) -> str | None:
        """The reason where its latest runs were all disturbed, and most others since then not."""
        latest = self.of(candidate)[-MOST_DISTURBED:]
        if len(latest) < MOST_DISTURBED or not all(sample.disturbed for sample in latest):
            return None
        since, machines = latest[0].turn, {sample.machine.id for sample in latest}
        other_samples = [
            sample
            for name, group in self.samples.items()
            if name != candidate
            for sample in group
            if sample.turn >= since and sample.machine.id in machines
        ]
        if sum(not sample.disturbed for sample in other_samples) <= len(other_samples) / 2:
            return None
        return (
            f"its last {MOST_DISTURBED} runs were all disturbed, and most of the others' meanwhile "
            f"were not: {'; '.join(latest[-1].disturbed)} ({latest[-1].log})"
        )

    @property
    def failed(self) -> dict[str, str]:
        """Every candidate that cannot be measured, and why."""
        names = dict.fromkeys([*self.unmeasurable, *self.samples])
        reasons = {name: self.why_not(name) for name in names}
        return {name: why for name, why in reasons.items() if why is not None}

    @property
    def rounds(self) -> int:
        """How many runs a candidate has at most."""
        return max(map(len, self.samples.values()), default=0)

    def after(self, samples: Iterable[Sample], unmeasurable: Mapping[str, str]) -> History:
        """Return the history with these as well.

        Earlier samples of a candidate that came from another image of the same machine don't count
        any more: the search was interrupted, and its inputs have changed since. Each machine makes
        images of its own.
        """
        groups: dict[str, list[Sample]] = {}
        for sample in samples:
            group = groups.get(sample.candidate_id) or list(self.of(sample.candidate_id))
            machine = sample.machine.id
            last = next(
                (earlier for earlier in reversed(group) if earlier.machine.id == machine), None
            )
            if last is not None and last.image_key != sample.image_key:
                group = [earlier for earlier in group if earlier.machine.id != machine]
            groups[sample.candidate_id] = [*group, sample]
        merged = {name: tuple(group) for name, group in groups.items()}
        return replace(
            self,
            samples={**self.samples, **merged},
            unmeasurable={**self.unmeasurable, **unmeasurable},
        )


def hardly_usable(usable: int, failed: int, always: float = ALWAYS) -> float:
    """Return the chance that less than ``USABLE`` of a candidate's runs are usable.

    Before its runs every share is as likely, and that none is has a chance of its own.
    """
    runs = usable + failed + 1
    below = 1 - sum(
        math.comb(runs, hits) * USABLE**hits * (1 - USABLE) ** (runs - hits)
        for hits in range(usable + 1)
    )
    if usable:
        return below
    sometimes = (1 - always) / runs  # that so many fail in a row
    return (always + sometimes * below) / (always + sometimes)


@dataclass(frozen=True, kw_only=True)
class Share:
    """One share of the probability: the first changed candidate is one of these."""

    after: str  # the last candidate that is not
    last: str
    candidates: int
    chance: float


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """The probabilities before the next step, to be shown; from 0 to 1."""

    shares: tuple[Share, ...]  # the likeliest first
    none: float
    ramp: float
    two: float
    noise_pct: float


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """These candidates next to each other, in any order."""

    candidates: tuple[str, ...]
    why: str
    remaining: int  # samples still expected after this turn, for the ETA
    outlook: Outlook | None = None
    fresh: bool = False  # with new servers, whatever their start takes


@dataclass(frozen=True, kw_only=True)
class Measure(Wanted):
    """What is wanted, as the planner made a turn of it: candidates begin in this order."""

    turn: int
    attempt: int = 1
    starts: Starts = "kept"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The search is over."""

    boundary: Boundary


@dataclass(frozen=True, kw_only=True)
class Enough:
    """Nothing more is wanted now: more may be asked later, or when what is under way has ended."""


Pending = Sequence[tuple[str, ...]]  # the candidates of each turn that is under way


class Search(Protocol):
    """A way to search: a value, so that equal ones decide the same."""

    looks: ClassVar[bool]  # for a step; else it only measures, and needs every candidate

    def next_step(
        self, question: Question, history: History, pending: Pending = ()
    ) -> Wanted | Answer | Enough:
        """Return what to measure next, other than what is pending, or the answer."""
        ...
