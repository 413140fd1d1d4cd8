"""RPM packages by mock, on a host that has it: a chroot of the release, and no container."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.drivers.mock_config import Chroot, Commands, config
from dsbuilds.drivers.package_build import (
    INDEX,
    PackageOrder,
    Progress,
    packages_build,
    provenance_of,
)
from dsbuilds.drivers.rpm import lay_out_sources
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sandbox.script import unbuildable, work_folder
from dsharness.content_key import content_key
from dsharness.errors import DeadlineError, ToolMissingError
from dsharness.model import Build, DriverName, Provenance
from dsharness.process.command import Completed, append_log, atomic_write, run, writing
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop

REVISION = 2
TOOLS = ("mock", "rpm", "createrepo_c")
CLEAN_LIMIT_S = 300.0
QUERY = "%{NAME}\\t%{VERSION}-%{RELEASE}\\n"


def build_mock(
    at: Workshop,
    order: PackageOrder,
    chroot: Chroot,
    *,
    flags: tuple[str, ...] = (),
    progress: Progress,
) -> Build:
    """The order's build: found, or made now by mock.

    A patch that does not fit fails in %prep: without a container, nothing is unpacked before.
    """
    version = run(["mock", "--version"]).stdout.strip()
    patches = [[patch.name, patch.sha256] for patch in order.patches]
    text = config(chroot, "dsbisect")
    key = content_key([DriverName.MOCK, REVISION, text, version, flags, order.source.identity,
                       patches])  # fmt: skip

    def make(target: Path) -> Provenance:
        started = time.monotonic()
        with work_folder() as build:
            settings = build / "dsbisect.cfg"
            settings.write_text(config(chroot, f"dsbisect-{key}"), encoding="utf-8")
            _Mock(
                at=at, order=order, build=build, progress=progress,
                commands=Commands(config=settings, flags=flags),
            ).make(target)  # fmt: skip
        return provenance_of(
            order, DriverName.MOCK,
            tree=order.source.identity, toolchain=f"mock {chroot.base}", tools={"mock": version},
            flags=flags, seconds=time.monotonic() - started, log=at.log,
        )  # fmt: skip

    return packages_build(at, order, key, make)


def refuse_missing_tools() -> None:
    """A host without mock cannot build by it: say what can."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise ToolMissingError(
            f"{' and '.join(missing)} cannot be found",
            hint="on Fedora: `dnf install mock createrepo_c` (Enterprise Linux: from EPEL), and "
            "membership in the group mock; elsewhere `driver: rpm` builds the same in a container",
        )


@dataclass(frozen=True, kw_only=True)
class _Mock:
    """One build: source RPM, dependencies, packages; then the chroot goes."""

    at: Workshop
    order: PackageOrder
    build: Path
    commands: Commands
    progress: Progress

    def make(self, target: Path) -> None:
        spec = lay_out_sources(self.order, self.build)
        result = self.build / "result"
        try:
            self._run("source", self.commands.source(spec, self.build / "SOURCES", result))
            srpm = _only(result.glob("*.src.rpm"), self.at.log)
            self.progress(f"installing what {self.order.source.name} is built with")
            self._run("dependencies", self.commands.dependencies(srpm))
            self.progress(f"building {self.order.source.name} {self.order.source.version}")
            self._run("build", self.commands.rebuild(srpm, result), result)
        finally:
            run(
                self.commands.clean(),
                deadline=Deadline.after(CLEAN_LIMIT_S), log=self.at.log, cleanup=True,
            )  # fmt: skip
        self._collect(result, target)

    def _run(self, stage: str, argv: Sequence[str], result: Path | None = None) -> Completed:
        limit_s = min(self.order.limits.time_s, self.at.deadline.left_s)
        done = run(argv, deadline=Deadline.after(limit_s), log=self.at.log)
        if done.timed_out:
            raise DeadlineError(
                f"mock took longer than {limit_s / 60:.0f} minutes", log=self.at.log
            )
        if not done.ok:
            raise unbuildable(
                f"dsbisect-stage\t{stage}\n{_build_log(result)}\n{done.stdout}\n{done.stderr}",
                self.at.log,
            )
        return done

    def _collect(self, result: Path, target: Path) -> None:
        made = sorted(path for path in result.glob("*.rpm") if not path.name.endswith(".src.rpm"))
        lines = []
        with writing(target):
            target.mkdir()
            for path in made:
                shutil.move(path, target / path.name)
                line = self._run("collect", _query(target / path.name)).stdout.strip()
                lines.append(f"{line}\t{path.name}\n")
            self._run("collect", ["createrepo_c", "--quiet", str(target)])
        if not lines:
            raise UnbuildableError("unbuildable: mock made no package", log=self.at.log)
        atomic_write(target / INDEX, "".join(lines))
        append_log(self.at.log, f"{len(lines)} packages\n")


def _query(package: Path) -> list[str]:
    return ["rpm", "--nosignature", "--query", "--package", "--queryformat", QUERY, str(package)]


def _build_log(result: Path | None) -> str:
    """The compiler's output; mock itself says only that it failed."""
    log = result / "build.log" if result else None
    return log.read_text(encoding="utf-8", errors="replace") if log and log.is_file() else ""


def _only(found: Iterable[Path], log: Path) -> Path:
    paths = list(found)
    if len(paths) != 1:
        raise UnbuildableError(f"unbuildable: mock made {len(paths)} source RPMs", log=log)
    return paths[0]
