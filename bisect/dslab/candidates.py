"""Where the images of candidates come from: rows of the matrix here, commits in commits/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dsbuilds.built_row import check_promise, row_image
from dsharness.containers.engine import Engine
from dsharness.measure.golden_state import Golden, golden_state
from dsharness.model import DriverName, Image, Matrix, Row, Settings, SystemName, Workload
from dsharness.products import product_of, source_system
from dsharness.progress import Progress
from dsharness.systems import Seed
from dslab.lab_conditions import refuse_misfits


class Supply(Protocol):
    """Makes the image of a candidate."""

    @property
    def identities(self) -> Mapping[str, str]:
        """What must stay the same for old samples to count; empty: the golden states' keys."""
        ...

    @property
    def runtimes(self) -> Mapping[str, str]:
        """Images that candidates are placed over, by toolchain; their keys cover every package."""
        ...

    def left(self) -> tuple[str, ...]:
        """What is to be prepared once all others are: again, or of what those hold."""
        ...

    def image(self, candidate: str, progress: Progress) -> Image:
        """The candidate's image: found, or built now."""
        ...

    def system(self, candidate: str) -> SystemName: ...

    def seed(self, candidate: str, common: Seed, progress: Progress) -> Seed:
        """What the candidate's server is made with, where that of the others is ``common``."""
        ...

    def check(self, candidate: str, golden: Golden) -> None:
        """Raise a CandidateError if the server does not store what was promised."""
        ...


class PackagedSupply:
    """The part of a ``Supply`` that is the same for all servers from packages."""

    @property
    def identities(self) -> Mapping[str, str]:
        return {}

    @property
    def runtimes(self) -> Mapping[str, str]:
        """None: a golden state is named by its image."""
        return {}

    def left(self) -> tuple[str, ...]:
        """None: each candidate has its own libraries, and that is what is compared."""
        return ()

    def seed(self, candidate: str, common: Seed, progress: Progress) -> Seed:
        """The same for all."""
        del candidate, progress
        return common

    def check(self, candidate: str, golden: Golden) -> None:
        """Packages were checked with the image; edits say what the server must store."""
        del candidate
        check_promise(golden)


@dataclass(frozen=True, kw_only=True)
class RowSupply(PackagedSupply):
    """Rows of a matrix."""

    engine: Engine
    matrix: Matrix
    relock: bool = False

    def image(self, candidate: str, progress: Progress) -> Image:
        row = self.matrix.row(candidate)
        return row_image(self.engine, self.matrix, row, relock=self.relock, on_progress=progress)

    def system(self, candidate: str) -> SystemName:
        return system_of(self.matrix.row(candidate))

    def golden(
        self, candidate: str, seed: Seed, progress: Progress, *, keep: bool = False
    ) -> Golden:
        """Its server, filled and checked; a CandidateError where that fails."""
        golden = golden_state(
            self.engine,
            self.image(candidate, progress),
            self.system(candidate),
            seed,
            progress=progress,
            keep=keep,
        )
        self.check(candidate, golden)
        return golden


class OfRow(Protocol):
    """What is made of a row, under a name of its own."""

    @property
    def row(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class ArmSupply(RowSupply):
    """Arms: candidates with the image and the system of a row, filled in another way."""

    arms: Mapping[str, OfRow]

    def image(self, candidate: str, progress: Progress) -> Image:
        image = super().image(self.arms[candidate].row, progress)
        return image.model_copy(update={"candidate_id": candidate})

    def system(self, candidate: str) -> SystemName:
        return super().system(self.arms[candidate].row)


def check_loads(
    matrix: Matrix, rows: Iterable[Row], workloads: Iterable[Workload], settings: Settings
) -> None:
    """UsageError for a workload or settings that one of these rows could never take."""
    workloads = tuple(workloads)
    for row in rows:
        refuse_misfits(row.id, system_of(row), workloads, settings, matrix)


def system_of(row: Row) -> SystemName:
    """What serves a row: a source tree that was built for it has a system of its own."""
    built = row.build is not None and row.build.driver is DriverName.TREE
    return source_system(product_of(row)) if built else row.system
