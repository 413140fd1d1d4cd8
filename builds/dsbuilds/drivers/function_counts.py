"""How often the functions of a build ran: gcov's counts, read in the toolchain's container."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError

from dsbuilds.drivers.tree import COVERAGE_FOLDER, LIBEXEC
from dsbuilds.history.changed_code import FunctionCount
from dsbuilds.sandbox.sandbox import Limits, confined
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.engine import Engine, last_line
from dsharness.errors import BuildError
from dsharness.model import Build
from dsharness.paths import logs_home

COUNTS_FOLDER = "/tmp/dsbisect-coverage"  # noqa: S108 - of the server's container; see build-tree
SCRIPT = "read-coverage"
LIMIT_S = 120.0
SAID_BYTES = 64 << 20


class _Function(BaseModel):
    model_config = ConfigDict(extra="ignore")
    name: str
    start_line: int
    end_line: int
    execution_count: int


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")
    file: str
    functions: tuple[_Function, ...]


class _Report(BaseModel):
    model_config = ConfigDict(extra="ignore")
    current_working_directory: str = ""
    files: tuple[_File, ...]


def function_counts(
    engine: Engine, build: Build, toolset: ToolchainImage, counts: Path
) -> tuple[FunctionCount, ...]:
    """What a server of a counting build left in ``counts``; BuildError if it cannot be read."""
    log = logs_home() / "builds" / f"coverage-{build.key}.log"
    volumes = (
        (LIBEXEC / SCRIPT, "/usr/libexec/dsbisect-read-coverage", "ro"),
        (Path(build.folder) / "install" / COVERAGE_FOLDER, "/notes", "ro"),
        (counts, "/counts", "ro"),
    )
    with confined(
        engine, toolset.reference,
        writable={}, volumes=volumes, purpose="coverage", log=log, limits=Limits(),
    ) as (box, _):  # fmt: skip
        done = box.execute(
            "/usr/libexec/dsbisect-read-coverage", limit_s=LIMIT_S, keep_bytes=SAID_BYTES
        )
    if not done.ok:
        raise BuildError(f"the counts of its functions cannot be read: {last_line(done)}", log=log)
    return counted(done.stdout)


def counted(text: str) -> tuple[FunctionCount, ...]:
    """Gcov's JSON, one report a line; what several objects hold of one function is added up."""
    calls = Counter[tuple[str, str, int, int]]()
    try:
        reports = [_Report.model_validate_json(line) for line in text.splitlines() if line.strip()]
    except ValidationError as error:
        raise BuildError("the counts of its functions are not what gcov writes") from error
    for report in reports:
        for file in report.files:
            path = _below(file.file, report.current_working_directory)
            for each in file.functions:
                calls[path, each.name, each.start_line, each.end_line] += each.execution_count
    return _functions(calls.items())


def _functions(
    calls: Iterable[tuple[tuple[str, str, int, int], int]],
) -> tuple[FunctionCount, ...]:
    return tuple(
        FunctionCount(file=file, name=name, first=first, last=last, calls=number)
        for (file, name, first, last), number in calls
    )


def _below(file: str, folder: str) -> str:
    """A path below the source's own folder, as git names it."""
    path = PurePosixPath(file)
    return str(path.relative_to(folder) if folder and path.is_relative_to(folder) else path)
