"""A trial whose packages are made already, or cannot be; no container, no build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shipped import MATRIX
from watchers import RecordingWatcher

from dsbisect.validate.check import Check, Gate
from dsbisect.validate.trial import Trial
from dsharness.containers.engine import Engine
from dsharness.model import Build, DriverName, Image, Provenance
from dsresults.store import Store

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


class MadeTrial(Trial):
    """``error`` is raised by whoever wants the packages."""

    error: Exception | None = None

    @property
    def made(self) -> tuple[Build, Image]:  # type: ignore[override]
        if self.error:
            raise self.error
        provenance = Provenance(
            driver=DriverName.DEB, source="s", tree="t", toolchain="i", clean=True, seconds=1.0,
            built_at="2026-01-01T00:00:00+00:00", log="l",
        )  # fmt: skip
        build = Build(key="b1", folder="/nowhere", content="c", provenance=provenance)
        return build, Image(candidate_id="patched", reference="r", key="p1")


def trial_in(folder: Path) -> MadeTrial:
    folder.mkdir(exist_ok=True)
    row = MATRIX.row("debian-13")
    made = MadeTrial(
        engine=ENGINE, matrix=MATRIX, row=row,
        patched_row=row.model_copy(update={"id": "debian-13-patched"}),
        workloads=MATRIX.workloads[:1], settings=MATRIX.settings[0],
        margin_pct=2.0, max_pairs=24, accept_weaker=False,
        folder=folder, store=Store.open(folder / "store.db"), watcher=RecordingWatcher(),
        progress=print,
    )  # fmt: skip
    made.stock = Image(candidate_id=row.id, reference="r", key="s1")
    return made
