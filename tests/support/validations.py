"""Sides of a validation: made already, for tests without a container, and for real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from observers import RecordingObserver
from shipped import MATRIX

from dsbisect.speed_gate import speed_steps
from dsharness.containers.engine import Engine
from dsharness.model import Build, DriverName, Image, Provenance, Row
from dsresults.store import Store
from dsvalidate.check import Check, Gate
from dsvalidate.step import Step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, made_sides, stock_image
from dsvalidate.suite import SpeedQuestion
from dsvalidate.validation import steps_of

ENGINE = Engine(
    podman_version="5.0.0",
    rootless=True,
    cgroups="v2",
    runtime="crun",
    pins_cpus=True,
    limits_memory=True,
)


@dataclass
class Told:
    """Keeps what a validation says of its steps."""

    began_: list[str] = field(default_factory=list)
    recalled_: list[str] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    skipped_: list[tuple[list[Gate], str]] = field(default_factory=list)
    known_: list[tuple[list[str], str]] = field(default_factory=list)

    def began(self, title: str, left_s: float) -> None:
        self.began_.append(title)
        self.left.append(left_s)

    def found(self, check: Check) -> None: ...

    def recalled(self, title: str) -> None:
        self.recalled_.append(title)

    def skipped(self, gates: Sequence[Gate], why: str) -> None:
        self.skipped_.append((list(gates), why))

    def known(self, checks: Sequence[Check], title: str) -> None:
        self.known_.append(([check.name for check in checks], title))


ROW = MATRIX.row("debian-13")


def tools_of(engine: Engine, row: Row, name: str) -> StepTools:
    return StepTools(engine=engine, matrix=MATRIX, family=row.family, name=name, progress=print)


def sides_of(**changes: Any) -> Sides:
    """Packages that nobody has built, next to stock ones."""
    provenance = Provenance(
        driver=DriverName.DEB, source="s", tree="t", toolchain="i", clean=True, seconds=1.0,
        built_at="2026-01-01T00:00:00+00:00", log="l",
    )  # fmt: skip
    known: dict[str, Any] = {
        "row": ROW,
        "patched_row": ROW.model_copy(update={"id": "debian-13-patched"}),
        "stock": Image(candidate_id=ROW.id, reference="r", key="s1"),
        "patched": Image(candidate_id="patched", reference="r", key="p1"),
        "build": Build(key="b1", folder="/nowhere", content="c", provenance=provenance),
        "given": False,
        "package_hashes": (),
    }
    return Sides(**(known | changes))


def question_of(sides: Sides, tools: StepTools, **changes: Any) -> SpeedQuestion:
    known: dict[str, Any] = {
        "workloads": MATRIX.workloads[:1], "settings": MATRIX.settings[0], "margin_pct": 2.0,
        "max_pairs": 24, "alone": lambda: None,
    }  # fmt: skip
    return SpeedQuestion(sides=sides, tools=tools, **(known | changes))


def steps_in(
    question: SpeedQuestion, folder: Path, *, accept_weaker: bool = False
) -> dict[str, Step]:
    """By name; those that need a laboratory cannot be run."""
    speed = partial(speed_steps, store=cast("Store", None), observer=RecordingObserver())
    evidence = EvidenceFolder(folder=folder)
    steps = steps_of(question, evidence, speed, accept_weaker=accept_weaker)
    return {step.name: step for step in steps}


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What the steps of a validation are given."""

    sides: Sides
    tools: StepTools
    evidence: EvidenceFolder

    def steps(self, *, accept_weaker: bool = False) -> dict[str, Step]:
        """By name; those that need a laboratory cannot be run."""
        question = question_of(self.sides, self.tools, max_pairs=40)
        return steps_in(question, self.evidence.folder, accept_weaker=accept_weaker)

    def found(self, *names: str, accept_weaker: bool = False) -> dict[str, Check]:
        """The checks of these steps, by name."""
        steps = self.steps(accept_weaker=accept_weaker)
        return {check.name: check for name in names for check in steps[name].run()}


def tried(
    row: Row, patched_row: Row, tools: StepTools, folder: Path, *,
    stock: Image | None = None, packages: Sequence[Path] = (),
) -> Tried:  # fmt: skip
    """Made for real; ``stock`` is the row's own image where none is given."""
    sides = made_sides(row, patched_row, stock or stock_image(row, tools), tools, packages)
    return Tried(sides=sides, tools=tools, evidence=EvidenceFolder(folder=folder / "evidence"))


def step_names(*gates: Gate) -> list[str]:
    """Of the steps of these gates that need no laboratory, in their order."""
    tools = tools_of(ENGINE, ROW, "none")
    steps = Tried(
        sides=sides_of(), tools=tools, evidence=EvidenceFolder(folder=Path("/nowhere"))
    ).steps()
    names = [name for name in steps if not name.startswith(("speed-", "leak"))]
    return [name for name in names if steps[name].gate in gates]
