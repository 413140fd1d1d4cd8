"""Who answers a study: this machine, or the store alone.

Both give the runs that a study asks for. What is stored counts: a study that was interrupted
continues, and one that was answered is answered again without a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.rows_study import RowsAsked, row_lab
from dsbuilds.build_request import check_rows
from dsharness.containers.engine import Engine
from dsharness.errors import InconclusiveError
from dsharness.matrix import find_row, find_settings, find_workload
from dsharness.model import Campaign, CampaignKind, Matrix, Sample, Settings, Workload
from dslab.candidates import check_loads
from dslab.known_answers import UnansweredError
from dslab.watcher import Watcher
from dsresults.store import Store

if TYPE_CHECKING:
    from pydantic import JsonValue

    from dsbisect.studies import Study


class Answer(Protocol):
    """What a study found: a ``Value`` that is stored, printed, and shown on a page."""

    @property
    def inconclusive(self) -> bool: ...

    def model_dump(self, *, mode: str) -> dict[str, JsonValue]: ...

    def model_dump_json(self, *, indent: int) -> str: ...


class Runs(Protocol):
    """Rows that are prepared for a load, as far as they can be."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Rows that could not be prepared, and why."""
        ...

    def refuse_failed(self) -> None:
        """Raise the error of the first row that could not be prepared."""
        ...

    def valid(
        self, load: Workload, rows: Sequence[str], number: int, later: int = 0
    ) -> list[Sample]:
        """All samples of a load, when each row has so many valid runs or fails again."""
        ...

    def in_turn(
        self, loads: Sequence[tuple[Workload, Sequence[str]]], number: int
    ) -> list[list[Sample]]:
        """The same of several loads, which take turns, each on rows of its own."""
        ...

    def stretch(self, load: Workload, row: str, number: int, later: int = 0) -> list[Sample]:
        """So many runs that follow each other on one server, whether they are valid or not."""
        ...


class Lab(Protocol):
    """Answers what studies ask."""

    @property
    def scene(self) -> Scene: ...

    def rows(self, study: Study, load: Workload) -> AbstractContextManager[Runs]:
        """Prepare the rows of a study for a load; leaving it ends their servers."""
        ...


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What the words of a study stand for: its matrix, and workloads, which files may hold."""

    matrix: Matrix
    workloads: dict[str, Workload] = field(default_factory=dict)  # as they were read, by name

    def workload(self, name: str) -> Workload:
        """Return the workload of this name, as it was when it was read first."""
        if name not in self.workloads:
            self.workloads[name] = find_workload(self.matrix, name)
        return self.workloads[name]

    def settings(self, study: Study) -> Settings:
        return find_settings(self.matrix, study.settings)

    def refuse_impossible(self, study: Study) -> tuple[Workload, ...]:
        """Return the loads; refuse what can never be built or measured, before anything starts."""
        rows = tuple(find_row(self.matrix, name) for name in study.names)
        loads = study.loads(self)
        check_rows(self.matrix, rows)
        check_loads(self.matrix, rows, self.workloads.values(), self.settings(study))
        return loads


@dataclass(frozen=True, kw_only=True)
class ThisMachine:
    """A ``Lab`` of this machine's own containers."""

    scene: Scene
    engine: Engine
    store: Store
    watcher: Watcher
    relock: bool = False
    keep: bool = False
    opened: dict[str, OpenCampaigns] = field(default_factory=dict)  # by load, in order

    @contextmanager
    def rows(self, study: Study, load: Workload) -> Iterator[OpenCampaigns]:
        asked = RowsAsked(
            matrix=self.scene.matrix,
            workloads=(load,),
            settings=self.scene.settings(study),
            metric=study.decider,
            relock=self.relock,
            keep=self.keep,
        )
        with row_lab(
            asked, study.names, 1,
            engine=self.engine, store=self.store, watcher=self.watcher, duet=False,
        ) as laboratory:  # fmt: skip
            runs = OpenCampaigns(
                asked=asked, kind=study.kind, lab=laboratory, store=self.store,
                watcher=self.watcher, errors=laboratory.failures,
            )  # fmt: skip
            self.opened[load.id] = runs
            yield runs


@dataclass(frozen=True, kw_only=True)
class StoreAlone:
    """A ``Lab`` that measures nothing: UnansweredError for what the store does not have.

    Runs that were taken after the answer do not count.
    """

    scene: Scene
    store: Store
    campaigns: Sequence[Campaign]
    failures: Mapping[str, Mapping[str, str]]  # by load, by row
    until: str

    @contextmanager
    def rows(self, study: Study, load: Workload) -> Iterator[StoredRuns]:
        yield StoredRuns(lab=self, kind=study.kind, failures=self.failures.get(load.id, {}))


@dataclass(frozen=True, kw_only=True)
class StoredRuns:
    """``Runs`` as they were stored."""

    lab: StoreAlone
    kind: CampaignKind
    failures: Mapping[str, str]

    def refuse_failed(self) -> None:
        for row, why in self.failures.items():
            raise InconclusiveError(f"{row} could not be prepared: {why}")

    def valid(
        self, load: Workload, rows: Sequence[str], number: int, later: int = 0
    ) -> list[Sample]:
        del number, later
        for campaign in self.lab.campaigns:
            question = (campaign.kind, campaign.workload_id, campaign.line)
            if question == (self.kind, load.id, tuple(rows)):
                samples = self.lab.store.samples(campaign_id=campaign.id)
                return [sample for sample in samples if sample.started_at <= self.lab.until]
        raise UnansweredError

    def in_turn(
        self, loads: Sequence[tuple[Workload, Sequence[str]]], number: int
    ) -> list[list[Sample]]:
        return [self.valid(load, rows, number) for load, rows in loads]

    def stretch(self, load: Workload, row: str, number: int, later: int = 0) -> list[Sample]:
        return self.valid(load, (row,), number, later)
