"""A lab of this machine whose rows are those of a world: studies are played without a container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from measured import WorldBenches
from observers import RecordingObserver
from shipped import MATRIX
from validations import ENGINE
from worlds import World

from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.study import Study
from dsbisect.study_lab import LabPart, Scene, ThisMachine, lab_key
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError
from dsharness.model import Campaign, CampaignKind, Sample, Turn, Workload
from dslab.campaign_loop import Answers, CampaignOrder, SampleSource
from dslab.observer import Observer
from dsresults.store import Store
from dssearch.question import Question, Search


@dataclass
class TimedBenches(WorldBenches):
    """Each run begins ten seconds after the one before."""

    def take(self, turn: Turn) -> Iterable[Sample]:
        for sample in super().take(turn):
            begun = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=10 * self.taken)
            yield sample.model_copy(update={"started_at": begun.isoformat()})


@dataclass(frozen=True, kw_only=True)
class WorldMachine(ThisMachine):
    """``unmade`` are rows that cannot be prepared, by load."""

    scene: Scene = field(default_factory=lambda: Scene(matrix=MATRIX))
    engine: Engine = ENGINE
    observer: Observer = field(default_factory=RecordingObserver)
    world: World
    benches: list[WorldBenches] = field(default_factory=list)
    stop_after: int = 10_000
    unmade: dict[str, dict[str, CandidateError]] = field(default_factory=dict)

    @property
    def taken(self) -> int:
        return sum(each.taken for each in self.benches)

    @contextmanager
    def rows(
        self, study: Study, *loads: Workload, part: LabPart | None = None
    ) -> Iterator[OpenCampaigns]:
        key = lab_key(loads[0], part)
        errors = self.unmade.get(key, {})
        self.benches.append(
            TimedBenches(
                self.world,
                stop_after=self.stop_after - self.taken,
                unmeasurable={row: str(error) for row, error in errors.items()},
            )
        )
        runs = OpenCampaigns(
            settings=part.settings.id if part else study.settings,
            metric=(part and part.metric) or study.decider, kind=study.runs_kind,
            search_kind=study.search_kind,
            lab=self.benches[-1], store=self.store, observer=self.observer, errors=errors,
        )  # fmt: skip
        self.opened[key] = runs
        yield runs


@dataclass(frozen=True)
class Fleet:
    """What machines answer that take the turns of one question after the other."""

    store: Store
    lab: SampleSource

    def within(self, lab: str) -> Answers:
        del lab
        return self._answered

    def _answered(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        order = CampaignOrder(
            question=question, workload=workload, search=search, lab=self.lab, store=self.store,
            kind=kind,
        )  # fmt: skip
        return order.run(RecordingObserver())
