"""What is validated: a row's stock packages, and those that are to take their place."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dsbisect.lab.watcher import Watcher
from dsbisect.validate.given_packages import given_build
from dsbisect.validate.tool_output import PackageTools
from dsbuilds.built_row import LIMIT_S, BuiltRowMaker
from dsbuilds.drivers.package_build import repository_of
from dsbuilds.drivers.package_image import installed
from dsbuilds.toolchains.toolchain_image import ToolchainImage, check_tools
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key, file_sha256
from dsharness.machine.host import machine_id
from dsharness.model import Build, Image, Matrix, Row, Settings, Workload
from dsharness.paths import logs_home
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop
from dsimages.image_set import build_image
from dsresults.store import Store

Progress = Callable[[str], None]


@dataclass(kw_only=True)
class Trial:
    """Made as far as it is asked for; what was made before is found by its key."""

    engine: Engine
    matrix: Matrix
    row: Row  # as it is
    patched_row: Row  # with its BuildSpec; of given packages: as ``row``, with an id of its own
    packages: tuple[Path, ...] = ()  # --package: these instead of a build
    workloads: tuple[Workload, ...]  # of the profile
    settings: Settings
    margin_pct: float  # what is slower by less is not worse
    max_pairs: int  # of each workload
    accept_weaker: bool
    folder: Path  # for evidence
    store: Store
    watcher: Watcher
    progress: Progress
    background: Future[object] | None = None  # what is built while nothing is timed

    def wait_until_alone(self) -> None:
        """Nothing is built while something is timed."""
        if self.background is not None and not self.background.done():
            self.progress("waiting for the second build: it would disturb what is timed")
            wait([self.background])

    @property
    def at(self) -> Workshop:
        """For a step that runs tools; its log is evidence too."""
        log = logs_home() / "validate" / f"{self.patched_row.id}.log"
        return Workshop(engine=self.engine, deadline=Deadline.after(LIMIT_S), log=log)

    @cached_property
    def stock(self) -> Image:
        """The row's image, with the distribution's own packages."""
        return build_image(self.engine, self.matrix, self.row, on_progress=self.progress)

    @cached_property
    def tools(self) -> ToolchainImage:
        """What looks at packages and servers: lintian, abidiff, ldap3 and more."""
        return check_tools(self.engine, self.matrix, progress=self.progress)

    @property
    def package_tools(self) -> PackageTools:
        """The same for this row's kind of packages."""
        return PackageTools(at=self.at, image=self.tools.reference, family=self.row.family)

    @cached_property
    def made(self) -> tuple[Build, Image]:
        """The patched packages, and the stock image with them installed over its own."""
        if self.packages:
            build = given_build(self.at, self.tools, self.packages, self.row)
            return build, installed(
                self.at, self.stock, build, self.patched_row, progress=self.progress
            )
        return self.maker.make()

    @property
    def maker(self) -> BuiltRowMaker:
        spec = self.patched_row.build
        assert spec is not None  # noqa: S101 - the request says --package or what to build
        return BuiltRowMaker(
            engine=self.engine, matrix=self.matrix, row=self.patched_row, spec=spec,
            base=self.stock, progress=self.progress,
        )  # fmt: skip

    @property
    def machine_id(self) -> str:
        return machine_id()

    @property
    def build(self) -> Build:
        return self.made[0]

    @cached_property
    def package_hashes(self) -> tuple[tuple[str, str], ...]:
        """Name and SHA-256 of each package: all that is found out is found out about these."""
        repository = repository_of(self.build)
        return tuple((name, file_sha256(repository / name)) for name in self.build.packages)

    @property
    def evidence(self) -> Path:
        """What was written down about these packages; others of the same names have their own."""
        return self.folder / "evidence" / content_key(self.package_hashes)

    @property
    def patched(self) -> Image:
        return self.made[1]

    def keep(self, name: str, text: str) -> str:
        """Write evidence; its name in the report."""
        atomic_write(self.evidence / name, text)
        return f"evidence/{name}"
