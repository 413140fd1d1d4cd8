"""A packager's question, checked before anything is started. No I/O but the files' names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsbuilds.build_request import check_rows
from dsharness.errors import UsageError
from dsharness.loads import LOADS
from dsharness.matrix import find_profile
from dsharness.model import BuildSpec, Matrix, Row, Settings, Workload
from dsharness.products.catalog import known_of, packages_of
from dsharness.systems import SYSTEMS
from dslab.lab_plan import default_workloads
from dsvalidate.given_packages import check_given
from dsvalidate.suites import suite_of

CHANGED = "patched"
MOST_PAIRS = 60


@dataclass(frozen=True, kw_only=True)
class ValidateRequest:
    """A row, what changes, and by how much it may be slower."""

    matrix: Matrix
    row: Row
    spec: BuildSpec | None  # None: packages are given
    packages: tuple[Path, ...] = ()
    workloads: tuple[Workload, ...]
    settings: Settings
    margin_pct: float = 2.0
    max_pairs: int = MOST_PAIRS
    accept_weaker: bool = False

    @property
    def patched_row(self) -> Row:
        changes = {"id": f"{self.row.id}-{CHANGED}", "published": None, "build": self.spec}
        return self.row.model_copy(update=changes)

    @property
    def change(self) -> str:
        """Name the change in words, for the report's title."""
        if self.spec is None:
            return ", ".join(package.name for package in self.packages)
        patches = (f"patch {Path(patch).name}" for patch in self.spec.patches)
        return ", ".join((*self.spec.edits, *patches)) or "rebuilt without a change"


def check_request(request: ValidateRequest) -> None:
    """Refuse, by a UsageError, what no validation can answer."""
    row, suite = request.row, suite_of(request.row)
    other = suite is not None and suite.system is not row.system
    if other or row.build is not None:
        built = ", built from source" if row.build else ""
        raise UsageError(
            f"row {row.id} ({row.system}{built}) has no stock packages of "
            f"{known_of(row).title} that could be upgraded",
            hint="name a row of a distribution as it is: `dsbisect matrix show`",
        )
    packages_of(row)  # a MatrixError says what is not known of them
    for workload in request.workloads:
        if not _answers(row, workload):
            raise UsageError(
                f"workload {workload.id} uses {LOADS[workload.tool].protocol}, which "
                f"{row.id} ({row.system}) does not answer",
                hint="--profile names one that fits; without it the lab chooses",
            )
    if request.spec is None and not request.packages:
        raise UsageError(
            "nothing is named that would change the row's packages",
            hint="--edit NAME=VALUE, --patch FILE or --package FILE",
        )
    if request.spec is not None and request.packages:
        raise UsageError(
            "--package takes packages as they are, so nothing is left to build",
            hint="leave out --edit, --patch, --source and --driver",
        )
    check_given(request.packages, row)
    if request.spec is not None:
        check_rows(request.matrix, (request.patched_row,))


def workloads_for(matrix: Matrix, row: Row, profile: str | None) -> tuple[Workload, ...]:
    """Return a profile's workloads; without a name those of the default, or others that fit."""
    usual = find_profile(matrix, profile)
    if profile is not None or all(_answers(row, each) for each in usual):
        return usual
    return default_workloads(matrix, [row.system])


def _answers(row: Row, workload: Workload) -> bool:
    return LOADS[workload.tool].protocol == SYSTEMS[row.system].protocol
