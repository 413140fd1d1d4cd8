"""One row against itself: measured as a search measures two rows, so that only noise differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.containers.engine import Engine
from dsharness.errors import InconclusiveError
from dsharness.model import Image, Sample, SystemName
from dsharness.progress import Progress
from dslab.campaign_loop import CampaignOrder
from dslab.candidates import RowSupply
from dslab.watcher import Watcher
from dsresults.compare.comparison_table import pairs
from dsresults.store import Store
from dssearch.planner import Rounds
from dssearch.question import History, Question

AGAIN = "-again"


@dataclass(frozen=True, kw_only=True)
class NoiseRequest(RowsAsked):
    """Which row to measure against itself, and how many runs of each side shall count."""

    row: str
    runs: int

    @property
    def line(self) -> tuple[str, str]:
        return self.row, f"{self.row}{AGAIN}"


@dataclass(frozen=True, kw_only=True)
class TwinSupply(RowSupply):
    """The same row under a second name."""

    twin: str

    def image(self, candidate: str, progress: Progress) -> Image:
        image = super().image(self._row(candidate), progress)
        return image.model_copy(update={"candidate_id": candidate})

    def system(self, candidate: str) -> SystemName:
        return super().system(self._row(candidate))

    def _row(self, candidate: str) -> str:
        return candidate.removesuffix(AGAIN) if candidate == self.twin else candidate


def measure_noise(
    request: NoiseRequest, engine: Engine, store: Store, watcher: Watcher
) -> list[Sample]:
    """All runs of both sides; what was interrupted continues. Only whole valid pairs count."""
    supply = TwinSupply(
        engine=engine, matrix=request.matrix, relock=request.relock, twin=request.line[1]
    )
    with row_lab(
        request, request.line, 1, engine=engine, store=store, watcher=watcher, supply=supply
    ) as laboratory:
        for failure in laboratory.failures.values():
            raise failure
        order = CampaignOrder(
            question=Question(
                series_id=request.row,
                line=request.line,
                workload_id=request.workloads[0].id,
                settings_id=request.settings.id,
                metric=request.metric,
            ),
            workload=request.workloads[0],
            search=whole_pairs(request.line, request.runs),
            lab=laboratory,
            store=store,
            kind="measure",
        )
        return store.samples(campaign_id=order.run(watcher).id)


def whole_pairs(line: Sequence[str], number: int) -> Rounds:
    """Turns until so many have two valid runs; InconclusiveError where one side fails again."""
    one, other = line

    def missing(history: History) -> int:
        for name, why in history.failed.items():
            raise InconclusiveError(
                f"{name} cannot be measured against itself: {why}",
                hint="remove the cause; the same command continues from the stored runs",
            )
        return number - len(pairs(history.of(one), history.of(other)))

    return Rounds(missing=missing)
