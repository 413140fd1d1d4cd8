"""How quiet, steady and roomy this machine is."""

from __future__ import annotations

import grp
import os
import re
import resource
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from dsharness.doctor.doctor_check import DoctorCheck, fail, ok, warn
from dsharness.errors import ExitCode
from dsharness.machine.host import available_cpus, read_ticks
from dsharness.process.command import PACKAGES_WITH, run
from dsharness.process.deadline import Deadline

GB = 10**9
DISK_WARN = 10 * GB
DISK_FAIL = 2 * GB
STEAL_WARN_PCT = 3.0
BUSY_SHARE = 0.5  # of the CPUs already busy with something else
OPEN_FILES = 4096
STEADY_CLOCKS = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen"}
CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def read_free(folder: Path) -> int | None:
    """Return bytes free for a folder that may not exist yet; None when that cannot be asked."""
    existing = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    try:
        return shutil.disk_usage(existing).free
    except OSError:
        return None


def check_disk(place: str, folder: Path, free: int | None) -> DoctorCheck:
    name = f"disk, {place}"
    if free is None:
        return warn(name, f"{folder} cannot be checked", "check who may read it")
    room_shown = f"{free / GB:.1f} GB free at {folder}"
    if free < DISK_FAIL:
        fix = "`dsbisect clean --images --cache` frees what the lab made"
        return fail(name, f"{room_shown}; the lab needs {DISK_FAIL // GB}", fix, ExitCode.DISK)
    if free < DISK_WARN:
        fix = "an image is about 0.5 GB, a golden state 0.1 GB more: free some space"
        return warn(name, room_shown, fix)
    return ok(name, room_shown)


def check_cpus(count: int) -> DoctorCheck:
    if count > 1:
        return ok("CPUs", str(count))
    return warn(
        "CPUs",
        "1: server and load share it, so a rate says as much about the load",
        "use 2 or more; until then trust CPU time for each operation, not the rate",
    )


def read_steal(seconds: float = 1.0) -> float:
    """Return the percent of the CPUs' time that the hypervisor gave to others."""
    cpus = available_cpus()
    before = read_ticks(cpus)
    time.sleep(seconds)
    return (read_ticks(cpus) - before).steal_pct


def check_steal(percent: float) -> DoctorCheck:
    share_shown = f"{percent:.1f} % over a second"
    if percent <= STEAL_WARN_PCT:
        return ok("stolen time", share_shown)
    return warn(
        "stolen time",
        f"{share_shown}: other machines take CPU from this one, and samples will be thrown away",
        "measure when the host is less busy, or on a host that is not shared",
    )


def check_load(load: float, cpus: int) -> DoctorCheck:
    load_shown = f"{load:.2f} over the last minute on {cpus} CPUs"
    if load <= BUSY_SHARE * cpus:
        return ok("load average", load_shown)
    return warn("load average", load_shown, "end what else is running, or wait until it is done")


def check_clock(source: str | None) -> DoctorCheck:
    if source is None:
        return ok("clock", "source not readable here")
    if source in STEADY_CLOCKS:
        return ok("clock", source)
    return warn(
        "clock",
        f"{source}: slow to read, which adds to each operation",
        "boot with clocksource=tsc if the CPU's is stable (see `dmesg | grep -i tsc`)",
    )


def check_governor(governor: str | None) -> DoctorCheck:
    if governor is None:
        return ok("CPU frequency", "not this machine's to choose (no cpufreq)")
    if governor == "performance":
        return ok("CPU frequency", governor)
    return warn(
        "CPU frequency",
        f"governor {governor}: the speed changes during a sample; the calibrator corrects for it",
        "cpupower frequency-set --governor performance",
    )


def read_open_files() -> int:
    """Return the most files a process may ask for; -1 is no bound."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return -1 if hard == resource.RLIM_INFINITY else hard


def check_ulimits(open_files: int) -> DoctorCheck:
    limit_shown = "open files: " + ("no bound" if open_files < 0 else str(open_files))
    if open_files < 0 or open_files >= OPEN_FILES:
        return ok("ulimits", limit_shown)
    return warn(
        "ulimits",
        f"{limit_shown}; the server reserves some and wants one for each connection",
        f"`* hard nofile {max(OPEN_FILES, 20000)}` in /etc/security/limits.conf, log in again",
    )


def read_load() -> float:
    return os.getloadavg()[0]


TIME_WAIT_S = 60
COMFORTABLE_PER_S = 4000  # above what ldclt reached with the cheapest scheme on two CPUs
FILES = ("/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/net/ipv4/tcp_tw_reuse")


@dataclass(frozen=True, kw_only=True)
class Ports:
    """The ports of the network namespace that server and load share, not of the host's."""

    first: int
    last: int
    reuse: int  # 0 never, 1 always, 2 over loopback only

    @property
    def ceiling_per_s(self) -> float | None:
        """Most connections a second between two addresses; None when ports are reused."""
        return None if self.reuse else (self.last - self.first + 1) / TIME_WAIT_S


def parse_ports(text: str) -> Ports | None:
    """The contents of FILES one after the other; None when they are not what they should be."""
    numbers = text.split()
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        return None
    first, last, reuse = map(int, numbers)
    return Ports(first=first, last=last, reuse=reuse)


def check_ports(ports: Ports | None) -> DoctorCheck:
    name = "ports"
    if ports is None:
        return warn(
            name,
            "the range of local ports cannot be read",
            "a bind rate that stops at some hundreds a second may then be the ports' limit",
        )
    ports_shown = f"{ports.last - ports.first + 1} local ports ({ports.first}-{ports.last})"
    ceiling = ports.ceiling_per_s
    if ceiling is None:
        return ok(name, f"{ports_shown}, reused over loopback: they set no bound on binds a second")
    limit = f"{ports_shown}, not reused for {TIME_WAIT_S} s: at most {ceiling:.0f} binds a second"
    if ceiling >= COMFORTABLE_PER_S:
        return ok(name, limit)
    return warn(
        name,
        limit,
        "a container does not take over the host's sysctl: `[containers]` with `default_sysctls = "
        '["net.ipv4.tcp_tw_reuse=1"]` in your containers.conf, then `dsbisect doctor --fresh`',
    )


# The oldest versions the lab was seen to work with.
KNOWN_TO_WORK = {"podman": (4, 3), "buildah": (1, 28)}
_VERSION_LIMIT_S = 20.0


def read_version(program: str) -> str | None:
    """Return the first line of ``--version``; None if the program is missing."""
    if shutil.which(program) is None:
        return None
    result = run([program, "--version"], deadline=Deadline.after(_VERSION_LIMIT_S))
    lines = (result.stdout or result.stderr).strip().splitlines()
    return lines[0] if lines else ""


def check_program(program: str, version: str | None) -> DoctorCheck:
    """Check podman or buildah: needed, and from KNOWN_TO_WORK on."""
    if version is None:
        return fail(program, "not installed", how_to_install(program), ExitCode.TOOL_MISSING)
    match = re.search(r"(\d+)\.(\d+)\S*", version)
    least = ".".join(map(str, KNOWN_TO_WORK[program]))
    if match is None:
        return warn(
            program, f"says no version: {version!r}", f"`{program} --version` should answer"
        )
    if (int(match[1]), int(match[2])) < KNOWN_TO_WORK[program]:
        return warn(program, match[0], f"older than {least}, the oldest known to work: update it")
    return ok(program, match[0])


def check_mmdebstrap(*, installed: bool) -> DoctorCheck:
    """Without it no Debian base can be made, and the default rows are Debian's."""
    if installed:
        return ok("mmdebstrap", "installed")
    fix = how_to_install("mmdebstrap")
    return fail("mmdebstrap", "not installed", fix, ExitCode.TOOL_MISSING)


def check_git(*, installed: bool) -> DoctorCheck:
    if installed:
        return ok("git", "installed")
    return warn("git", "not installed; needed to build from source", how_to_install("git"))


def read_strace() -> str | None:
    """What strace says when it may not watch a process of this user; None if it is missing."""
    if shutil.which("strace") is None:
        return None
    quiet = ["-f", "-q", "-o", "/dev/null"]
    result = run(["strace", *quiet, "true"], deadline=Deadline.after(_VERSION_LIMIT_S))
    return "" if result.ok else result.stderr.strip() or result.end


def check_strace(problem: str | None) -> DoctorCheck:
    """Only the metrics of system calls need it."""
    name = "strace"
    if problem is None:
        return warn(name, "not installed; needed to count system calls", how_to_install(name))
    if problem:
        return warn(
            name,
            f"may not watch processes: {problem.splitlines()[0]}; system calls cannot be counted",
            "sysctl -w kernel.yama.ptrace_scope=1 if it is larger; a container that holds the lab "
            "needs a seccomp profile that allows ptrace",
        )
    return ok(name, "may watch processes: system calls can be counted")


BOOTED = Path("/run/systemd/system")
MOCK_NEEDS = (
    "on a machine with systemd: dnf install mock, as an ordinary user `sudo usermod --append "
    "--groups mock $USER`, log in again"
)


def read_mock() -> str | None:
    """What keeps this user from building with mock; None where it is not installed."""
    if shutil.which("mock") is None:
        return None
    if os.getuid() == 0:
        return "it does not run as root"
    try:
        group = grp.getgrnam("mock").gr_gid
    except KeyError:
        return "there is no group mock"
    if group not in os.getgroups():
        return "this user is not in the group mock"
    return "" if BOOTED.is_dir() else "without systemd its builds would have a network"


def check_mock(problem: str | None) -> DoctorCheck:
    """Only a build that asks for it needs it."""
    name = "mock"
    if problem is None:
        return ok(name, "not installed; only `--builder mock` needs it")
    if problem:
        return warn(
            name,
            f"{problem}: `--builder mock` cannot be used",
            MOCK_NEEDS,
        )
    return ok(name, "this user is in its group")


def how_to_install(program: str) -> str:
    package = PACKAGES_WITH.get(program, program)
    return f"`make setup` installs it, or: apt-get install {package} / dnf install {package}"
