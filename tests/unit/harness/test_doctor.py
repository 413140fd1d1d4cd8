"""Each check is a pure function over facts: tables of what is seen and what it means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.containers.engine import Engine
from dsharness.doctor import (
    DoctorCheck,
    Level,
    checkup,
    engine_checks,
    fail,
    machine_checks,
    ok,
    warn,
)
from dsharness.doctor.checkup import Diagnosis, missing, soften
from dsharness.doctor.engine_checks import Account
from dsharness.doctor.machine_checks import Ports
from dsharness.errors import DiskFullError, EngineError, ExitCode

GB = 10**9
ENGINE = Engine(
    podman_version="5.2.0", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip


def engine(**changes: Any) -> Engine:
    return Engine(**{**ENGINE.__dict__, **changes})


def account(**changes: Any) -> Account:
    plain: dict[str, Any] = {
        "name": "ann", "uid": 1000, "subuid": "ann:100000:65536\n", "subgid": "1000:100000:65536\n",
        "mappers": ("newuidmap", "newgidmap"), "runtime_dir": "/run/user/1000",
        "runtime_dir_writable": True,
    }  # fmt: skip
    return Account(**{**plain, **changes})


@pytest.mark.parametrize(
    ("program", "version", "level", "seen"),
    [
        ("podman", None, Level.FAIL, "not installed"),
        ("podman", "podman version 4.3.1", Level.OK, "4.3.1"),
        ("podman", "podman version 10.0.0-rc1", Level.OK, "10.0.0-rc1"),
        ("podman", "podman version 3.4.4", Level.WARN, "3.4.4"),
        ("podman", "", Level.WARN, "says no version"),
        ("buildah", "buildah version 1.28.2 (image-spec 1.1.0-rc2)", Level.OK, "1.28.2"),
        ("buildah", "buildah version 1.9.0 (image-spec 1.0)", Level.WARN, "1.9.0"),
        ("buildah", "buildah: cannot run", Level.WARN, "says no version"),
    ],
)
def test_program(program: str, version: str | None, level: Level, seen: str) -> None:
    check = machine_checks.check_program(program, version)
    assert (check.name, check.level) == (program, level)
    assert seen in check.seen


def test_a_missing_program_ends_doctor_with_its_own_code() -> None:
    assert machine_checks.check_program("podman", None).code is ExitCode.TOOL_MISSING
    assert machine_checks.check_mmdebstrap(installed=False).code is ExitCode.TOOL_MISSING
    assert machine_checks.check_mmdebstrap(installed=True).level is Level.OK
    assert machine_checks.check_git(installed=False).level is Level.WARN
    assert machine_checks.check_git(installed=True).level is Level.OK


def test_only_counts_of_system_calls_need_strace() -> None:
    assert machine_checks.check_strace(None).level is Level.WARN
    refused = machine_checks.check_strace("strace: ptrace(PTRACE_TRACEME): Operation not permitted")
    assert refused.level is Level.WARN
    assert "PTRACE_TRACEME" in refused.seen
    assert machine_checks.check_strace(machine_checks.read_strace()).level is Level.OK
    assert "install rpm" in machine_checks.how_to_install("rpmbuild")


def test_mock_is_named_and_who_may_not_use_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine_checks.check_mock("").level is Level.OK
    assert "only `--builder mock` needs it" in machine_checks.check_mock(None).seen
    refused = machine_checks.check_mock("this user is not in the group mock")
    assert refused.level is Level.WARN
    assert "usermod" in refused.fix
    monkeypatch.setenv("PATH", "")
    assert machine_checks.read_mock() is None


def test_containers_say_which_plan_and_why_once() -> None:
    check = engine_checks.check_engine(
        engine(
            works_with="runtime runc",
            configuration=Path("/home/ann/.config/dsbisect/containers.conf"),
            notes=(
                "podman with its own configuration: Error: crun: hybrid mode not supported",
                "cgroup manager cgroupfs: Error: crun: hybrid mode not supported",
            ),
        )
    )
    assert check.level is Level.OK
    assert check.seen == (
        "they start with runtime runc, written to /home/ann/.config/dsbisect/containers.conf, "
        "because: crun: hybrid mode not supported"
    )
    assert "with its own configuration" in engine_checks.check_engine(ENGINE).seen


@pytest.mark.parametrize(
    ("complaint", "fix"),
    [
        ("open /dev/null: permission denied", "chmod 0666 /dev/null"),
        ('exec: "newuidmap": executable file not found in $PATH', "install uidmap"),
        ("no subuid ranges found for user ann in /etc/subuid", "--add-subuids"),
        ("crun: cgroups in hybrid mode not supported", "install runc"),
        ("container-init binary not found on the host: init binary /usr/bin/x", "catatonit"),
        ("could not find a working conmon binary", "install conmon"),
        ("cannot clone: no space left on device", "free some space"),
        ("something never seen", "podman info"),
    ],
)
def test_a_complaint_has_a_mend(complaint: str, fix: str) -> None:
    check = engine_checks.check_engine(EngineError(complaint))
    assert (check.level, check.code) == (Level.FAIL, ExitCode.ENGINE)
    assert fix in check.fix
    assert fix in engine_checks.check_build(complaint).fix


def test_a_build_that_works() -> None:
    assert engine_checks.check_build(None).level is Level.OK


ENGINE_TABLE: list[tuple[Callable[[Engine], DoctorCheck], Engine, Level, str]] = [
    (engine_checks.check_runtime, ENGINE, Level.OK, ""),
    (engine_checks.check_runtime, engine(runtime="kata"), Level.WARN, "crun"),
    (engine_checks.check_cgroups, ENGINE, Level.OK, ""),
    (engine_checks.check_pinning, ENGINE, Level.OK, ""),
    (engine_checks.check_pinning, engine(pins_cpus=False), Level.WARN, "Delegate="),
    (engine_checks.check_pinning, engine(pins_cpus=False, cgroups="v1"), Level.WARN, "unified"),
    (engine_checks.check_pinning, engine(pins_cpus=False, rootless=False), Level.WARN, "withholds"),
    (engine_checks.check_memory_limit, ENGINE, Level.OK, ""),
    (engine_checks.check_memory_limit, engine(limits_memory=False), Level.WARN, "Delegate="),
]


@pytest.mark.parametrize(("check", "facts", "level", "fix"), ENGINE_TABLE)
def test_engine(
    check: Callable[[Engine], DoctorCheck], facts: Engine, level: Level, fix: str
) -> None:
    result = check(facts)
    assert result.level is level
    assert fix in result.fix


@pytest.mark.parametrize(
    ("metering", "level"),
    [
        (engine_checks.Metering(source="cgroup-v1"), Level.OK),
        (engine_checks.Metering(source="cgroup-v2"), Level.OK),
        (engine_checks.Metering(source="proc"), Level.WARN),
        (engine_checks.Metering(problem="process 1 has ended"), Level.FAIL),
    ],
)
def test_metering(metering: engine_checks.Metering, level: Level) -> None:
    assert engine_checks.check_metering(ENGINE, metering).level is level


def test_storage() -> None:
    assert engine_checks.check_storage("overlay", Path("/s")).level is Level.OK
    assert engine_checks.check_storage("vfs", Path("/s")).level is Level.WARN


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"subuid": ""}, "subordinate ids"),
        ({"subgid": "bob:100000:65536\n"}, "subordinate ids"),
        ({"subuid": "ann:100000:1000\n"}, "subordinate ids"),
        ({"subuid": "ann:100000:many\n"}, "subordinate ids"),
        ({"mappers": ("newuidmap",)}, "id mapping"),
        ({"null_mode": 0o644}, "/dev/null"),
        ({"namespaces": (("user.max_user_namespaces", 0),)}, "user namespaces"),
        ({"namespaces": (("kernel.unprivileged_userns_clone", 0),)}, "user namespaces"),
        ({"runtime_dir": "", "runtime_dir_writable": False}, "XDG_RUNTIME_DIR"),
        ({"runtime_dir_writable": False}, "XDG_RUNTIME_DIR"),
    ],
)
def test_rootless(changes: dict[str, Any], name: str) -> None:
    """One thing wrong gives exactly one finding, with a fix."""
    wrong = [c for c in engine_checks.check_rootless(account(**changes)) if c.level is not Level.OK]
    assert [check.name for check in wrong] == [name]
    assert wrong[0].fix


def test_rootless_is_nothing_to_root_and_all_well_to_a_prepared_user() -> None:
    assert engine_checks.check_rootless(account(uid=0, subuid="")) == []
    assert {check.level for check in engine_checks.check_rootless(account())} == {Level.OK}


@given(st.lists(st.tuples(st.sampled_from(["ann", "1000", "bob"]), st.integers(0, 10**6))))
def test_ranges_add_up_by_name_and_by_number(ranges: list[tuple[str, int]]) -> None:
    table = "".join(f"{owner}:100000:{count}\n" for owner, count in ranges)
    mine = sum(count for owner, count in ranges if owner != "bob")
    assert engine_checks.granted(table, "ann", 1000) == mine


def test_behaviour_wins_over_a_prerequisite_but_for_the_ids() -> None:
    wrong = engine_checks.check_rootless(account(mappers=(), subuid=""))
    softened = {check.name: check.level for check in map(soften, wrong)}
    assert softened["id mapping"] is Level.WARN
    assert softened["subordinate ids"] is Level.FAIL
    assert softened["/dev/null"] is Level.OK


@pytest.mark.parametrize(
    ("free", "level", "code"),
    [
        (None, Level.WARN, ExitCode.OK),
        (0, Level.FAIL, ExitCode.DISK),
        (2 * GB - 1, Level.FAIL, ExitCode.DISK),
        (2 * GB, Level.WARN, ExitCode.OK),
        (10 * GB - 1, Level.WARN, ExitCode.OK),
        (10 * GB, Level.OK, ExitCode.OK),
    ],
)
def test_disk(free: int | None, level: Level, code: ExitCode) -> None:
    check = machine_checks.check_disk("cache", Path("/c"), free)
    assert (check.level, check.code) == (level, code)


def test_free_space_is_that_of_the_nearest_folder_there_is(tmp_path: Path) -> None:
    free = machine_checks.read_free(tmp_path / "not" / "yet")
    assert free is not None
    assert free > 0


MACHINE_TABLE = [
    (machine_checks.check_cpus(1), Level.WARN),
    (machine_checks.check_cpus(2), Level.OK),
    (machine_checks.check_steal(0.0), Level.OK),
    (machine_checks.check_steal(3.0), Level.OK),
    (machine_checks.check_steal(3.1), Level.WARN),
    (machine_checks.check_load(1.0, 2), Level.OK),
    (machine_checks.check_load(1.01, 2), Level.WARN),
    (machine_checks.check_clock(None), Level.OK),
    (machine_checks.check_clock("tsc"), Level.OK),
    (machine_checks.check_clock("hpet"), Level.WARN),
    (machine_checks.check_governor(None), Level.OK),
    (machine_checks.check_governor("performance"), Level.OK),
    (machine_checks.check_governor("powersave"), Level.WARN),
    (machine_checks.check_ulimits(-1), Level.OK),
    (machine_checks.check_ulimits(4096), Level.OK),
    (machine_checks.check_ulimits(1024), Level.WARN),
]


@pytest.mark.parametrize(("check", "level"), MACHINE_TABLE)
def test_machine(check: DoctorCheck, level: Level) -> None:
    assert check.level is level
    assert bool(check.fix) == (level is not Level.OK)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("32768\t60999\n2\n", Ports(first=32768, last=60999, reuse=2)),
        ("1024 65535\n0\n", Ports(first=1024, last=65535, reuse=0)),
        ("32768 60999\n", None),
        ("cat: no such file", None),
        ("", None),
    ],
)
def test_ports_are_read(text: str, expected: Ports | None) -> None:
    assert machine_checks.parse_ports(text) == expected


@pytest.mark.parametrize(
    ("facts", "level", "seen"),
    [
        (Ports(first=32768, last=60999, reuse=2), Level.OK, "28232 local ports"),
        (Ports(first=32768, last=60999, reuse=1), Level.OK, "no bound"),
        (Ports(first=32768, last=60999, reuse=0), Level.WARN, "at most 471 binds a second"),
        (Ports(first=1024, last=65535, reuse=0), Level.WARN, "at most 1075 binds a second"),
        (None, Level.WARN, "cannot be read"),
    ],
)
def test_ports(facts: Ports | None, level: Level, seen: str) -> None:
    check = machine_checks.check_ports(facts)
    assert check.level is level
    assert seen in check.seen


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ((), ExitCode.OK),
        ((ok("a", "x"), warn("b", "x", "y")), ExitCode.OK),
        ((fail("a", "x", "y"),), ExitCode.ENGINE),
        ((fail("a", "x", "y", ExitCode.DISK), fail("b", "x", "y")), ExitCode.ENGINE),
        ((fail("a", "x", "y"), fail("b", "x", "y", ExitCode.TOOL_MISSING)), ExitCode.TOOL_MISSING),
        ((fail("a", "x", "y", ExitCode.DISK),), ExitCode.DISK),
    ],
)
def test_exit_code(checks: tuple[DoctorCheck, ...], code: ExitCode) -> None:
    assert Diagnosis(checks=checks, engine=None).exit_code is code


def test_only_the_engines_programs_keep_doctor_from_asking_the_engine() -> None:
    gone = fail("mmdebstrap", "x", "y", ExitCode.TOOL_MISSING)
    assert not missing([ok("podman", "4.3"), ok("buildah", "1.28"), gone])
    assert missing([ok("podman", "4.3"), machine_checks.check_program("buildah", None)])


def test_without_podman_the_machine_is_looked_at_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    diagnosis = checkup.examine(fresh=False, progress=lambda _: None)
    levels = {check.name: check.level for check in diagnosis.checks}
    assert diagnosis.exit_code is ExitCode.TOOL_MISSING
    assert levels["podman"] is Level.FAIL
    assert "containers" not in levels
    assert {"CPUs", "stolen time", "disk, cache"} <= set(levels)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineError("crun: hybrid mode"), ExitCode.ENGINE),
        (DiskFullError("no space left", hint="free some"), ExitCode.DISK),
    ],
)
def test_an_engine_that_raises_becomes_a_finding(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: ExitCode
) -> None:
    def broken(**_: object) -> Engine:
        raise error

    monkeypatch.setattr(checkup, "detect", broken)
    monkeypatch.setattr(machine_checks, "read_version", lambda name: f"{name} version 9.9.9")
    monkeypatch.setattr(machine_checks, "read_steal", lambda: 0.0)
    monkeypatch.setattr(checkup.shutil, "which", lambda name: name)
    diagnosis = checkup.examine(fresh=False, progress=lambda _: None)
    containers = next(check for check in diagnosis.checks if check.name == "containers")
    assert containers.level is Level.FAIL
    assert containers.fix
    assert diagnosis.engine is None
    assert diagnosis.exit_code is code
