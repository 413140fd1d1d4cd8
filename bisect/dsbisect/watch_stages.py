"""The moments of a watch's search: both ends differ; measured again they still do, and it goes on.

They are told when they begin, so that who looks from elsewhere sees them. What becomes of an alarm
is kept the moment it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from dsharness.errors import DsbisectError, StoreError
from dsharness.model import Boundary, Campaign, Sample
from dslab.observer import Observer
from dsresults.number_text import times
from dsresults.report.upstream_issue import UpstreamIssue
from dsresults.store import Store
from dsresults.watch.alarms import (
    Alarm,
    AlarmEvent,
    AlarmState,
    alarms_of,
    searched,
    sighted,
    taken_back,
    unconfirmed,
)
from dsresults.watch.watched_series import WatchedSeries, WatchedTip
from dssearch.question import Measure, Question

T = TypeVar("T")

LIKELY = 0.5  # the chance that there is a step at all


@dataclass(kw_only=True)
class SearchStages(Observer):
    """Passes on what it is told, and tells of a tip that seems worse."""

    observer: Observer
    reference: str  # as candidates are called
    tip: str
    began: Callable[[AlarmState, str], None]
    stage: AlarmState | None = None
    _samples: list[Sample] = field(default_factory=list)

    def step(self, question: Question, step: Measure) -> None:
        ends = {self.reference, self.tip}
        spans_ends = {question.line[0], question.line[-1]} == ends
        ratio = self._ratio(question)
        likely = step.outlook is not None and step.outlook.none < LIKELY
        if spans_ends and likely and ratio is not None and ratio > 1:
            comparison = question.decider.words.said("slower", times(ratio))
            note = f"so far {self.tip} {comparison} than {self.reference}"
            if self.stage is None:
                self._begin(AlarmState.NEW, note)
            if self.stage is AlarmState.NEW and not set(step.candidates) <= ends:
                self._begin(AlarmState.BISECTING, note)
        self.observer.step(question, step)

    def _begin(self, stage: AlarmState, note: str) -> None:
        self.began(stage, note)  # told again where it could not be kept
        self.stage = stage

    def _ratio(self, question: Question) -> float | None:
        """How much worse the tip is in the mean; None until both were measured."""
        means: list[float] = []
        for name in (self.tip, self.reference):
            candidate_samples = [
                sample for sample in self._samples if sample.candidate_id == name and sample.valid
            ]
            values = list(filter(None, map(question.decider.slowness, candidate_samples)))
            if not values:
                return None
            means.append(sum(values) / len(values))
        return means[0] / means[1]

    def sampled(self, sample: Sample) -> None:
        self._samples.append(sample)
        self.observer.sampled(sample)

    def resumed(self, campaign: Campaign, samples: int) -> None:
        self.observer.resumed(campaign, samples)

    def unmeasurable(self, row: str, why: str) -> None:
        self.observer.unmeasurable(row, why)

    def answered(self, boundary: Boundary) -> None:
        self.observer.answered(boundary)

    def prepared(self, row: str) -> None:
        self.observer.prepared(row)

    def failed(self, row: str, why: str) -> None:
        self.observer.failed(row, why)

    def preparing(self, row: str, news: str) -> None:
        self.observer.preparing(row, news)

    def note(self, text: str) -> None:
        self.observer.note(text)

    def begin(self, rows: Sequence[str], questions: int) -> None:
        self.observer.begin(rows, questions)


@dataclass(frozen=True, kw_only=True)
class AlarmLog:
    """Keeps what becomes of tips and alarms, and says it."""

    store: Store
    say: Callable[[str], None]

    def stages(
        self, observer: Observer, series: WatchedSeries, tip: str, line: Sequence[str]
    ) -> SearchStages:
        """Those of a search along a line of candidates, the last of which is the tip."""
        return SearchStages(
            observer=observer,
            reference=line[0],
            tip=line[-1],
            began=lambda state, note: self.began(series, tip, state, note),
        )

    def told(self, tip: WatchedTip) -> WatchedTip:
        """Keep a tip with its answer."""
        self.store.put(tip.finding)
        self.say(f"{tip.series}: {tip.summary}")
        return tip

    def began(self, series: WatchedSeries, tip: str, state: AlarmState, note: str) -> None:
        """Keep that a search has come so far, unless it is known."""
        self._keep([searched(self._alarms, tip, series, state, note)])

    def searched(
        self, series: WatchedSeries, tip: str, stages: SearchStages, search: Callable[[], T]
    ) -> T:
        """What a search says; one that ends without an answer waits for the next look."""
        try:
            return search()
        except BaseException as error:
            if stages.stage:
                why = error.message if isinstance(error, DsbisectError) else "interrupted"
                with suppress(StoreError):  # it would hide the real error
                    self.began(series, tip, AlarmState.NEW, why.splitlines()[0])
            raise

    def seen(
        self, tip: WatchedTip, issue: Callable[[], UpstreamIssue], same: Sequence[str] = ()
    ) -> None:
        """Keep what a tip's answer makes of alarms: a new one, or the end of others."""
        alarms = self._alarms
        events: list[AlarmEvent | None] = [*taken_back(alarms, tip), *unconfirmed(alarms, tip)]
        if tip.direction == "slower":
            upstream = issue()
            events.append(sighted(alarms, tip, same=same, title=upstream.title, text=upstream.body))
        self._keep(events)

    @property
    def _alarms(self) -> tuple[Alarm, ...]:
        return alarms_of(self.store.findings("alarm"))

    def _keep(self, events: Iterable[AlarmEvent | None]) -> None:
        for event in filter(None, events):
            self.store.put(event.finding)
            self.say(f"alarm {event.alarm}: {event.state}: {event.note}")
