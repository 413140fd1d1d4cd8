"""What every step of a validation works with, and where it writes down what it saw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dsbuilds.built_row import LIMIT_S
from dsbuilds.toolchains.toolchain_image import ToolchainImage, check_tools
from dsharness.containers.engine import Engine
from dsharness.model import Family, Matrix
from dsharness.paths import logs_home
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline
from dsharness.progress import Progress
from dsimages.buildah import Workshop
from dsvalidate.tool_output import PackageTools


@dataclass(kw_only=True)
class StepTools:
    """An engine, the image of programs that look at packages and servers, and a log."""

    engine: Engine
    matrix: Matrix
    family: Family  # of the packages
    name: str  # of the logs
    progress: Progress

    @property
    def at(self) -> Workshop:
        """For a step that runs tools; its log is evidence too."""
        log = logs_home() / "validate" / f"{self.name}.log"
        return Workshop(engine=self.engine, deadline=Deadline.after(LIMIT_S), log=log)

    @cached_property
    def image(self) -> ToolchainImage:
        """Lintian, abidiff, ldap3 and more, made when a step first needs them."""
        return check_tools(self.engine, self.matrix, progress=self.progress)

    @property
    def packages(self) -> PackageTools:
        """The programs of that image that read packages."""
        return PackageTools(at=self.at, image=self.image.reference, family=self.family)


@dataclass(frozen=True, kw_only=True)
class EvidenceFolder:
    """The folder of these packages; others of the same names have their own."""

    folder: Path

    def keep(self, name: str, text: str) -> str:
        """Write a text, and return its name in the report."""
        atomic_write(self.folder / name, text)
        return f"evidence/{name}"
