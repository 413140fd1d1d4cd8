"""The campaigns of one lab of this machine: searches, and runs without a search.

What is stored counts. Runs without a search have no end: more may be asked for later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dsbisect.capacity import Counts, is_valid
from dsbisect.earlier_runs import begin_with_earlier
from dsharness.errors import CandidateError, InconclusiveError
from dsharness.machine.host import session_id
from dsharness.measure.gate import is_fed
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import find_metric
from dsharness.model import Campaign, CampaignKind, Image, Sample, Workload
from dslab.campaign_loop import CampaignOrder, SampleSource
from dslab.inspections import LabInspections
from dslab.laboratory import Laboratory
from dslab.observer import Observer
from dslab.step_profiles import profile_steps
from dsresults.profile_pair import ProfilePair
from dsresults.store import Store
from dssearch.planner import Rounds
from dssearch.question import History, Question, Search

TRIES = 4  # runs that do not count, one after the other


Asked = tuple[Question, Workload]
SearchFor = Callable[[Workload, Sequence[Campaign]], Search]  # with the answers so far


class Decided(Protocol):
    """Runs under some settings, of which one metric is looked at."""

    @property
    def settings(self) -> str: ...

    @property
    def metric(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class OpenCampaigns:
    """The campaigns of one kind in one lab: the ``Runs`` of this machine."""

    settings: str
    metric: str
    kind: CampaignKind
    search_kind: CampaignKind = "rows"
    lab: SampleSource
    store: Store
    observer: Observer
    laboratory: Laboratory | None = None  # that of this lab, for more than runs
    errors: Mapping[str, CandidateError] = field(default_factory=dict)  # of what was prepared
    campaigns: list[str] = field(default_factory=list)  # their ids

    @property
    def failures(self) -> Mapping[str, str]:
        return self.lab.unmeasurable

    @property
    def paired(self) -> bool:
        return self.laboratory is not None and self.laboratory.paired

    @property
    def images(self) -> Mapping[str, Image]:
        return self.laboratory.images if self.laboratory else {}

    def note(self, row: str, what: str) -> None:
        self.observer.preparing(row, what)

    def refuse_failed(self) -> None:
        for error in self.errors.values():
            raise error

    def valid(
        self,
        load: Workload,
        rows: Sequence[str],
        number: int,
        later: int = 0,
        *,
        counts: Counts = is_valid,
    ) -> list[Sample]:
        """All samples of this load, when each row has so many runs that count or fails again."""
        missing = valid_runs(rows, number, session_id(), counts)
        return self._samples(load, tuple(rows), Rounds(missing=missing, open_end=True, later=later))

    def in_turn(
        self, loads: Sequence[tuple[Workload, Sequence[str]]], number: int
    ) -> list[list[Sample]]:
        """The same of several loads, which take turns."""
        samples: list[list[Sample]] = [[] for _ in loads]
        runs = sum(len(rows) for _, rows in loads)
        for turn in range(1, number + 1):
            for index, (load, rows) in enumerate(loads):
                samples[index] = self.valid(
                    load, rows, turn, later=runs * (number - turn), counts=is_fed
                )
        return samples

    def whole_turns(
        self, load: Workload, rows: Sequence[str], number: int, series: str
    ) -> list[Sample]:
        """All samples of this load, when so many turns are whole; more may be asked for later."""
        rounds = Rounds(missing=whole_runs(rows, number, find_metric(self.metric)), open_end=True)
        return self._samples(load, tuple(rows), rounds, series, suppressed=())

    def fresh(self, load: Workload, rows: Sequence[str], rounds: Rounds) -> list[Sample]:
        """All samples of turns that are taken now; what was interrupted continues."""
        return self._samples(load, tuple(rows), rounds, rows[0], suppressed=())

    def stretch(self, load: Workload, row: str, number: int, later: int = 0) -> list[Sample]:
        """Runs of this start of the lab that follow each other: an interrupted one begins again."""

        def missing(history: History) -> int:
            return number - len(history.of(row))

        rounds = Rounds(missing=missing, open_end=True, later=later)
        return self._samples(load, (row,), rounds, f"{self.kind}-{session_id()}")

    def searched(
        self, questions: Sequence[Asked], search_for: SearchFor, *, once: bool = False
    ) -> list[Campaign]:
        """One campaign for each question; answers of an interrupted run are kept.

        ``once``: whatever is answered already is not asked again, and runs that another answer
        took, which had to be more or less sure, count.
        """
        campaigns: list[Campaign] = []
        for number, (_, workload) in enumerate(questions):
            search = search_for(workload, campaigns)
            order, *later = (
                CampaignOrder(
                    question=question,
                    workload=load,
                    search=search,
                    lab=self.lab,
                    store=self.store,
                    kind=self.search_kind,
                )
                for question, load in questions[number:]
            )
            unfinished = next(
                (campaign for order_later in later if (campaign := order_later.unfinished)), None
            )
            earlier = unfinished and order.answered_before(unfinished.started_at)
            if once:
                earlier = next(iter(order.answers[-1:]), None)
            if earlier and earlier.boundary and not order.unfinished:
                self.observer.resumed(earlier, len(self.store.samples(campaign_id=earlier.id)))
                self.observer.answered(earlier.boundary)
                campaigns.append(earlier)
                continue
            if once and not order.unfinished:
                begin_with_earlier(order)
            campaigns.append(order.run(self.observer))
        self.campaigns.extend(campaign.id for campaign in campaigns)
        return campaigns

    def profiled(
        self, campaigns: Sequence[Campaign], workloads: Sequence[Workload]
    ) -> Sequence[ProfilePair]:
        """Profile both sides of each answer."""
        if self.laboratory is None:
            return ()
        inspections = LabInspections(lab=self.laboratory)
        return profile_steps(campaigns, workloads, inspections, self.store, self.observer)

    def _samples(
        self,
        load: Workload,
        rows: tuple[str, ...],
        rounds: Rounds,
        series: str = "",
        *,
        # disturbed again and again: the answer says so
        suppressed: tuple[type[InconclusiveError], ...] = (InconclusiveError,),
    ) -> list[Sample]:
        """All samples of this load, also those that cannot be used, when none is missing."""
        order = CampaignOrder(
            question=runs_question(self, load, rows, self.kind, series),
            workload=load,
            search=rounds,
            lab=self.lab,
            store=self.store,
            kind=self.kind,
        )
        campaign: Campaign | None
        try:
            campaign = order.run(self.observer)
        except suppressed:
            campaign = order.unfinished
        if campaign is None:
            return []
        if campaign.id not in self.campaigns:
            self.campaigns.append(campaign.id)
        return self.store.samples(campaign_id=campaign.id)


def runs_question(
    runs: Decided, load: Workload, rows: tuple[str, ...], kind: CampaignKind, series: str = ""
) -> Question:
    """Return the question of runs without a search, by which they are found again."""
    return Question(
        series_id=series or (rows[0] if len(rows) == 1 else kind),
        line=rows,
        workload_id=load.id,
        settings_id=runs.settings,
        metric=runs.metric,
    )


def valid_runs(
    rows: Sequence[str], number: int, session: str | None = None, counts: Counts = is_valid
) -> Callable[[History], int]:
    """How many turns are missing until each row has so many runs that count, or fails again.

    A row that fails again and again is given up for one start of a lab, if that is named.
    """

    def missing(history: History) -> int:
        counted = (
            sum(map(counts, history.of(row)))
            for row in rows
            if not gave_up(history.of(row), session, counts)
        )
        return number - min(counted, default=number)

    return missing


def whole_runs(
    rows: Sequence[str], number: int, metric: Metric | None = None
) -> Callable[[History], int]:
    """How many turns are missing until so many are whole; InconclusiveError where none can be."""

    def missing(history: History) -> int:
        for name, why in history.failed.items():
            if name in rows:
                raise InconclusiveError(
                    f"{name} cannot be measured: {why}",
                    hint="remove the cause; the same command continues from the stored runs",
                )
        samples = [sample for name in rows for sample in history.of(name)]
        return number - len(whole_turns(rows, samples, metric))

    return missing


def whole_turns(
    rows: Sequence[str], samples: Iterable[Sample], metric: Metric | None = None
) -> list[dict[str, Sample]]:
    """The turns in which each row has a valid run, with that metric, on one machine; in order."""
    turns: dict[tuple[int, str], dict[str, Sample]] = {}
    for sample in samples:
        counts = sample.valid and (metric is None or metric.slowness(sample))
        if counts and sample.candidate_id in rows:
            turns.setdefault((sample.turn, sample.machine.id), {})[sample.candidate_id] = sample
    return [turns[key] for key in sorted(turns) if len(turns[key]) == len(rows)]


def gave_up(
    samples: Sequence[Sample], session: str | None = None, counts: Counts = is_valid
) -> bool:
    """Whether none of a row's latest runs counts: those of a start of the lab, if that is named."""
    latest = [sample for sample in samples if session in {None, sample.session}][-TRIES:]
    return len(latest) == TRIES and not any(map(counts, latest))
