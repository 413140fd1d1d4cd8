"""Campaigns that look for nothing and have no end: what is stored counts, more may be asked.

Each is of one load on some rows, which take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from dsharness.errors import CandidateError, InconclusiveError
from dsharness.machine.host import session_id
from dsharness.model import CampaignKind, Sample, Settings, Workload
from dslab.campaign_loop import CampaignOrder, SampleSource
from dslab.watcher import Watcher
from dsresults.store import Store
from dssearch.planner import Rounds
from dssearch.question import History, Question

TRIES = 4  # runs that are not valid, one after the other


class Asked(Protocol):
    """What a user asks: of rows, or of commits."""

    @property
    def settings(self) -> Settings: ...

    @property
    def metric(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class OpenCampaigns:
    """The campaigns of one kind in one lab: the ``Runs`` of this machine."""

    asked: Asked
    kind: CampaignKind
    lab: SampleSource
    store: Store
    watcher: Watcher
    errors: Mapping[str, CandidateError] = field(default_factory=dict)  # of what was prepared
    campaigns: list[str] = field(default_factory=list)  # ids of all that were asked

    @property
    def failures(self) -> Mapping[str, str]:
        return {row: str(error) for row, error in self.errors.items()}

    def refuse_failed(self) -> None:
        for error in self.errors.values():
            raise error

    def valid(
        self, load: Workload, rows: Sequence[str], number: int, later: int = 0
    ) -> list[Sample]:
        """All samples of this load, when each row has so many valid runs or fails again."""

        def missing(history: History) -> int:
            valid = (
                sum(sample.valid for sample in history.of(row))
                for row in rows
                if not gave_up(history.of(row))
            )
            return number - min(valid, default=number)

        return self._samples(load, tuple(rows), missing, later)

    def in_turn(
        self, loads: Sequence[tuple[Workload, Sequence[str]]], number: int
    ) -> list[list[Sample]]:
        """The same of several loads, which take turns."""
        samples: list[list[Sample]] = [[] for _ in loads]
        runs = sum(len(rows) for _, rows in loads)
        for turn in range(1, number + 1):
            for index, (load, rows) in enumerate(loads):
                samples[index] = self.valid(load, rows, turn, later=runs * (number - turn))
        return samples

    def stretch(self, load: Workload, row: str, number: int, later: int = 0) -> list[Sample]:
        """Runs of this start of the lab that follow each other: an interrupted one begins again."""

        def missing(history: History) -> int:
            return number - len(history.of(row))

        return self._samples(load, (row,), missing, later, f"{self.kind}-{session_id()}")

    def _samples(
        self,
        load: Workload,
        rows: tuple[str, ...],
        missing: Callable[[History], int],
        later: int,
        series: str = "",
    ) -> list[Sample]:
        """All samples of this load, also those that cannot be used, when none is missing."""
        order = CampaignOrder(
            question=Question(
                series_id=series or (rows[0] if len(rows) == 1 else self.kind),
                line=rows,
                workload_id=load.id,
                settings_id=self.asked.settings.id,
                metric=self.asked.metric,
            ),
            workload=load,
            search=Rounds(missing=missing, open_end=True, later=later),
            lab=self.lab,
            store=self.store,
            kind=self.kind,
        )
        with suppress(InconclusiveError):  # disturbed again and again: the answer says so
            order.run(self.watcher)
        campaign = order.unfinished
        if campaign is None:
            return []
        if campaign.id not in self.campaigns:
            self.campaigns.append(campaign.id)
        return self.store.samples(campaign_id=campaign.id)


def gave_up(samples: Sequence[Sample]) -> bool:
    """Whether this start of the lab should try no more; the next one does."""
    latest = [each for each in samples if each.session == session_id()][-TRIES:]
    return len(latest) == TRIES and not any(each.valid for each in latest)
