"""All checks of `dsbisect doctor`, in the order in which a person would fix them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import (
    detect,
    read_inside,
    try_build,
    try_container,
    try_metering,
)
from dsharness.doctor import DoctorCheck, Level, engine_checks, fail, machine_checks, warn
from dsharness.errors import DsbisectError, EngineError, ExitCode
from dsharness.machine.host import available_cpus, system_text
from dsharness.paths import cache_home
from dsharness.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All findings, and the engine when there is one that works."""

    checks: tuple[DoctorCheck, ...]
    engine: Engine | None

    @property
    def exit_code(self) -> ExitCode:
        """The lowest: a missing tool, then an engine that does not work, then a full disk."""
        failed = {check.code for check in self.checks if check.level is Level.FAIL}
        return min(failed, default=ExitCode.OK)

    def count(self, level: Level) -> int:
        return sum(check.level is level for check in self.checks)


def examine(*, fresh: bool, progress: Progress) -> Diagnosis:
    """Run every check; a failure becomes a result, not an exception."""
    progress("programs")
    checks = list(_programs())
    engine: Engine | None = None
    if not missing(checks):
        progress("container engine")
        try:
            engine = working_engine(fresh=fresh)
            checks.append(engine_checks.check_engine(engine))
            checks.extend(_engine(engine, progress))
        except EngineError as error:
            checks.append(engine_checks.check_engine(error))
        except DsbisectError as error:
            checks.append(fail("containers", error.message, error.hint, error.exit_code))
    account = engine_checks.check_rootless(engine_checks.read_account())
    checks += map(soften, account) if engine else account
    progress("this machine")
    checks += _machine()
    return Diagnosis(checks=tuple(checks), engine=engine)


def working_engine(*, fresh: bool) -> Engine:
    """Return the engine as remembered, as long as that still starts a container and lacks nothing.

    What would be reported as missing may have been cured since it was remembered.
    """
    engine = detect(fresh=fresh)
    whole = engine.pins_cpus and engine.moves_cpus and engine.limits_memory
    if not fresh and (not whole or try_container(engine.configuration) is not None):
        return detect(fresh=True)
    return engine


def missing(checks: list[DoctorCheck]) -> bool:
    """Return whether the engine's own programs are not there to be asked."""
    return any(
        check.level is Level.FAIL and check.name in machine_checks.KNOWN_TO_WORK for check in checks
    )


def soften(check: DoctorCheck) -> DoctorCheck:
    """Behaviour wins: if containers start, this is only a warning; images need all their ids."""
    if check.level is Level.FAIL and check.name != engine_checks.IDS:
        return warn(check.name, f"{check.seen}; containers start in spite of it", check.fix)
    return check


def _programs() -> Iterator[DoctorCheck]:
    for program in machine_checks.KNOWN_TO_WORK:
        yield machine_checks.check_program(program, machine_checks.read_version(program))
    yield machine_checks.check_mmdebstrap(installed=shutil.which("mmdebstrap") is not None)
    yield machine_checks.check_git(installed=shutil.which("git") is not None)
    yield machine_checks.check_strace(machine_checks.read_strace())
    yield machine_checks.check_mock(machine_checks.read_mock())


def _engine(engine: Engine, progress: Progress) -> Iterator[DoctorCheck]:
    yield engine_checks.check_runtime(engine)
    progress("a build")
    yield engine_checks.check_build(try_build(engine))
    yield engine_checks.check_cgroups(engine)
    yield engine_checks.check_pinning(engine)
    yield engine_checks.check_memory_limit(engine)
    progress("a container's CPU time")
    yield engine_checks.check_metering(engine, _metering(engine))
    yield machine_checks.check_ports(
        machine_checks.parse_ports(read_inside(engine.configuration, *machine_checks.FILES))
    )
    driver, folder = _storage(engine)
    yield engine_checks.check_storage(driver, folder)
    yield machine_checks.check_disk("images", folder, machine_checks.read_free(folder))


def _metering(engine: Engine) -> engine_checks.Metering:
    try:
        return engine_checks.Metering(source=try_metering(engine))
    except DsbisectError as error:
        return engine_checks.Metering(problem=error.message)


def _storage(engine: Engine) -> tuple[str, Path]:
    """Return the storage driver, and the folder where images are kept."""
    store: dict[str, str] = json.loads(engine.must("info", "--format", "json"))["store"]
    return store["graphDriverName"], Path(store["graphRoot"])


def _machine() -> Iterator[DoctorCheck]:
    cpus = len(available_cpus())
    yield machine_checks.check_ulimits(machine_checks.read_open_files())
    yield machine_checks.check_cpus(cpus)
    yield machine_checks.check_steal(machine_checks.read_steal())
    yield machine_checks.check_load(machine_checks.read_load(), cpus)
    yield machine_checks.check_clock(system_text(machine_checks.CLOCK) or None)
    yield machine_checks.check_governor(system_text(machine_checks.GOVERNOR) or None)
    yield machine_checks.check_disk("cache", cache_home(), machine_checks.read_free(cache_home()))
