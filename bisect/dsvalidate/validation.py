"""A validation, from a packager's question to the answer: all gates, in their order.

The question is checked before anything is started, with no I/O but the files' names. A product has
its own suite; of one without, only packages and speed are tried.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

from dsbuilds.build_request import check_rows
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import UsageError
from dsharness.matrix import find_profile
from dsharness.model import BuildSpec, Image, Matrix, Row, Settings, Workload
from dsharness.paths import cache_home
from dsharness.product_folder import product_folders
from dsharness.products import product_of
from dsharness.products.catalog import known_of, packages_of
from dsharness.systems import answers
from dslab.lab_conditions import default_workloads
from dslab.observer import Observer
from dsresults.store import Store
from dsvalidate import builds_gate, installs_gate, safe_gate, works_gate
from dsvalidate.check import PackageFile, Validation
from dsvalidate.package_files import check_given
from dsvalidate.step import Background, KeptSteps, Step, StepListener, run_steps
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, made_sides, stock_image
from dsvalidate.suite import SpeedQuestion, SpeedSteps, Suite


def suite_of(row: Row) -> Suite | None:
    """Return the suite of the row's product; None where there is none."""
    return cast("Suite | None", product_folders()[product_of(row)].part("suite"))


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
    other_system = suite is not None and suite.system != row.system
    if other_system or row.build is not None:
        built = ", built from source" if row.build else ""
        raise UsageError(
            f"row {row.id} ({row.system}{built}) has no stock packages of "
            f"{known_of(row).title} that could be upgraded",
            hint="name a row of a distribution as it is: `dsbisect list rows` has all",
        )
    packages_of(row)  # a MatrixError says what is not known of them
    for workload in request.workloads:
        if not answers(row.system, workload):
            raise UsageError(
                f"workload {workload.id} uses {workload.protocol}, which "
                f"{row.id} ({row.system}) does not answer",
                hint="--profile names one that fits; without it the lab chooses",
            )
        if workload.stopped:
            raise UsageError(
                f"workload {workload.id} stops the server, and a validation asks servers that run",
                hint="name another profile, and measure it by `dsbisect measure`",
            )
    if request.spec is None and not request.packages:
        raise UsageError(
            "nothing is named that would change the row's packages",
            hint="--edit NAME=VALUE, --patch FILE or --package FILE",
        )
    if request.spec is not None and request.packages:
        raise UsageError(
            "--package takes packages as they are, so nothing is left to build",
            hint="leave out --edit, --patch, --source, --driver and --builder",
        )
    check_given(request.packages, row)
    if request.spec is not None:
        check_rows(request.matrix, (request.patched_row,))


def workloads_for(matrix: Matrix, row: Row, profile: str | None) -> tuple[Workload, ...]:
    """Return a profile's workloads; without a name those of the default, or others that fit."""
    usual = find_profile(matrix, profile)
    if profile is not None or all(answers(row.system, workload) for workload in usual):
        return usual
    return default_workloads(matrix, [row.system])


# A look at what all others left behind, and a whole build, for a finding that rarely decides.
LAST = ("traces", "reproducible")
# About, of all steps but those of a workload, and of such a one: for the first ETA.
COMMON_S, WORKLOAD_S = 1260.0, 200.0


class ValidationListener(StepListener, Observer, Protocol):
    """Receives what steps and labs do."""


@dataclass(frozen=True, kw_only=True)
class Validated:
    """The answer, and the files that it is about."""

    validation: Validation
    packages: Sequence[Path] = ()  # none if they could not be built
    evidence: Path | None = None


def validate(
    request: ValidateRequest,
    *,
    engine: Engine,
    store: Store,
    listener: ValidationListener,
    command: str,
    speed_steps: SpeedSteps,
) -> Validated:
    """Build the packages and run every step; the answer is stored."""
    started_at, began = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    row, folder = request.row, _folder(request)
    server = packages_of(row).server
    tools = StepTools(
        engine=engine,
        matrix=request.matrix,
        family=row.family,
        name=request.patched_row.id,
        progress=listener.note,
    )
    stock = stock_image(row, tools)
    background = Background(tools.progress)
    made_sides_list: list[Sides] = []

    def prepare() -> tuple[Sequence[Step], KeptSteps]:
        sides = made_sides(row, request.patched_row, stock, tools, request.packages)
        made_sides_list.append(sides)
        question = SpeedQuestion(
            sides=sides,
            tools=tools,
            workloads=request.workloads,
            settings=request.settings,
            margin_pct=request.margin_pct,
            max_pairs=request.max_pairs,
            alone=background.wait,
        )
        steps = steps_of(
            question,
            evidence_of(folder, sides),
            speed_steps,
            accept_weaker=request.accept_weaker,
        )
        return steps, kept_steps(folder, sides)

    expected_s = COMMON_S + WORKLOAD_S * len(request.workloads)
    no_step = f"no suite for {known_of(row).title}"  # else each gate has a step
    checks = run_steps(prepare, expected_s, background, listener, no_step=no_step)
    validation = Validation(
        row=row.id,
        change=request.change,
        workloads=tuple(workload.id for workload in request.workloads),
        settings=request.settings.id,
        margin_pct=request.margin_pct,
        max_pairs=request.max_pairs,
        accept_weaker=request.accept_weaker,
        stock=f"{server} {_version(server, stock)}",
        patched=_version(server, made_sides_list[0].patched) if made_sides_list else "nothing",
        packages=tuple(
            PackageFile(name=name, sha256=digest)
            for sides in made_sides_list
            for name, digest in sides.package_hashes
        ),
        command=command,
        machine=f"{platform.machine()}, Linux {platform.release()}",
        started_at=started_at,
        seconds=round(time.monotonic() - began, 1),
        checks=checks,
    )
    store.put(validation.finding)
    if not made_sides_list:
        return Validated(validation=validation)
    evidence = evidence_of(folder, made_sides_list[0]).folder
    return Validated(validation=validation, packages=made_sides_list[0].files, evidence=evidence)


def steps_of(
    question: SpeedQuestion,
    evidence: EvidenceFolder,
    speed_steps: SpeedSteps,
    *,
    accept_weaker: bool,
) -> tuple[Step, ...]:
    """List what the gates do, in its order; what takes long and rarely decides comes last.

    Without a suite of the product nothing is known of its server: packages and speed are left.
    """
    common, suite = (question.sides, question.tools, evidence), suite_of(question.sides.row)
    steps = builds_gate.steps(*common)
    if suite is not None:
        steps = (
            *steps,
            *installs_gate.steps(*common, suite),
            *works_gate.steps(*common, suite),
            *safe_gate.steps(*common, suite, accept_weaker=accept_weaker),
            *suite.performs(question, evidence),
        )
    steps = (*steps, *speed_steps(question))
    return tuple(sorted(steps, key=lambda step: LAST.index(step.name) if step.name in LAST else -1))


def evidence_of(folder: Path, sides: Sides) -> EvidenceFolder:
    return EvidenceFolder(folder=folder / "evidence" / content_key(sides.package_hashes))


def kept_steps(folder: Path, sides: Sides) -> KeptSteps:
    """Packages count by what they are, not by what they were made from; so does product data."""
    stock = [sides.stock.key, dict(sides.stock.packages)]
    product_facts = known_of(sides.row).model_dump(mode="json")
    sides_facts = [stock, sides.build.key, sides.package_hashes, product_facts]
    return KeptSteps(folder=folder / "steps", sides=sides_facts)


def _version(server: str, image: Image) -> str:
    return str(image.packages.get(server, "none"))


def _folder(request: ValidateRequest) -> Path:
    """Return the folder of what is kept between runs of the same question."""
    facts = [
        request.patched_row.model_dump(mode="json"),
        [str(package.absolute()) for package in request.packages],
    ]
    return cache_home() / "validate" / f"{request.patched_row.id}-{content_key(facts)}"
