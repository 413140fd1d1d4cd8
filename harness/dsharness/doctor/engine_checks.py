"""The container engine: does it start containers, build, pin, bound, and let itself be metered.

An unprivileged user needs more for containers than root: ids, their mappers, namespaces.
"""

from __future__ import annotations

import getpass
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from dsharness.containers.engine import AS_IT_IS, Engine
from dsharness.doctor.doctor_check import DoctorCheck, fail, ok, warn
from dsharness.errors import EngineError
from dsharness.machine.host import system_text

DELEGATION = (
    "let users' sessions have it: a file /etc/systemd/system/user@.service.d/delegate.conf with "
    "`[Service]` and `Delegate=cpu cpuset io memory pids`, `systemctl daemon-reload`, log in again"
)
CONTROLLERS = (
    "the kernel or the outer container withholds cpuset or memory: /proc/cgroups lists what is "
    "enabled; run a container that holds the lab with its controllers delegated"
)
NEEDS_V2 = "boot with systemd.unified_cgroup_hierarchy=1, or run the lab as root"

# Podman's messages, and what helps. The first one found in the text counts.
_FIXES = (
    ("/dev/null", "chmod 0666 /dev/null: every container opens it"),
    ("newuidmap", "apt-get install uidmap / dnf install shadow-utils"),
    ("subuid", "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER"),
    ("init binary", "apt-get install catatonit / dnf install catatonit"),
    ("conmon", "apt-get install conmon / dnf install conmon"),
    ("hybrid mode", "crun refuses this machine's cgroups: apt-get install runc / dnf install runc"),
    ("user namespace", "sysctl -w user.max_user_namespaces=65536"),
    ("netavark", "apt-get install netavark / dnf install netavark"),
    ("fuse-overlayfs", "apt-get install fuse-overlayfs / dnf install fuse-overlayfs"),
    ("no space left", "free some space, or move podman's storage: graphroot in storage.conf"),
    ("permission denied", "nested containers need --privileged, or /dev/fuse and their own cgroup"),
)


@dataclass(frozen=True, kw_only=True)
class Metering:
    """The means by which a container's CPU time was read, or why it could not be."""

    source: str = ""
    problem: str = ""


def check_engine(probed: Engine | EngineError) -> DoctorCheck:
    """Return whether containers start, with which settings, and why those were needed."""
    if isinstance(probed, EngineError):
        return fail("containers", probed.message, fix_for(f"{probed.message} {probed.hint}"))
    if probed.works_with == AS_IT_IS:
        return ok("containers", "they start with podman with its own configuration")
    why = "; ".join(reason(note) for note in unlike(probed.notes))
    return ok(
        "containers",
        f"they start with {probed.works_with}, written to {probed.configuration}, because: {why}",
    )


def unlike(notes: tuple[str, ...]) -> list[str]:
    """Return the first of each message: several configurations often fail in the same way."""
    firsts: dict[str, str] = {}
    for note in notes:
        firsts.setdefault(reason(note), note)
    return list(firsts.values())


def reason(note: str) -> str:
    """Return podman's message, without the configuration that was tried and its prefix."""
    return note.partition(": ")[2].removeprefix("Error: ")


def fix_for(complaint: str) -> str:
    """Return the step that helps against what podman complains of."""
    text = complaint.lower()
    known_fix = next((fix for sign, fix in _FIXES if sign in text), None)
    return known_fix or "`podman run --rm --log-level debug ...` says more; `podman info` must work"


def check_build(problem: str | None) -> DoctorCheck:
    if problem is None:
        return ok("builds", "buildah runs a step")
    return fail("builds", f"buildah cannot run a step: {problem}", fix_for(problem))


def check_runtime(engine: Engine) -> DoctorCheck:
    if engine.runtime in {"crun", "runc"}:
        return ok("runtime", engine.runtime)
    return warn("runtime", f"{engine.runtime}: the lab knows crun and runc", "apt-get install crun")


def check_cgroups(engine: Engine) -> DoctorCheck:
    return ok("cgroups", f"{engine.cgroups}, {'rootless' if engine.rootless else 'root'}")


def check_pinning(engine: Engine) -> DoctorCheck:
    if engine.pins_cpus:
        moves = "works, also while they run: two candidates are measured at the same time"
        stays = "works: server and load get their own CPUs"
        return ok("CPU pinning", moves if engine.moves_cpus else stays)
    return warn("CPU pinning", "has no effect: server and load share all CPUs", _fix(engine))


def check_memory_limit(engine: Engine) -> DoctorCheck:
    if engine.limits_memory:
        return ok("memory limits", "work")
    return warn("memory limits", "have no effect: a server may take all memory", _fix(engine))


def check_metering(engine: Engine, metering: Metering) -> DoctorCheck:
    name = "CPU time"
    if metering.problem:
        return fail(name, f"of a container cannot be read: {metering.problem}", _fix(engine))
    if metering.source == "proc":
        return warn(
            name,
            "read from /proc: in 10 ms ticks, and only of processes still alive; "
            "containers have no cgroup of their own",
            _fix(engine),
        )
    return ok(name, f"read for each container from its own {metering.source}")


def check_storage(driver: str, folder: Path) -> DoctorCheck:
    """Vfs copies the whole file system for each layer and each container."""
    if driver != "vfs":
        return ok("storage", f"{driver} at {folder}")
    return warn(
        "storage",
        f"vfs at {folder}: each layer and each container is a full copy, slow and large",
        '`[storage]` with `driver = "overlay"` in storage.conf, then `podman system reset` '
        "(removes all your images); kernels before 5.13 also want fuse-overlayfs",
    )


def _fix(engine: Engine) -> str:
    if not engine.rootless:
        return CONTROLLERS
    return NEEDS_V2 if engine.cgroups == "v1" else DELEGATION


IDS = "subordinate ids"
IDS_NEEDED = 65536
NULL = Path("/dev/null")


@dataclass(frozen=True, kw_only=True)
class Account:
    """The user as the engine sees it."""

    name: str
    uid: int
    subuid: str = ""  # text of /etc/subuid
    subgid: str = ""
    mappers: tuple[str, ...] = ()  # which of newuidmap and newgidmap there are
    null_mode: int = 0o666
    namespaces: tuple[tuple[str, int], ...] = ()  # sysctls about user namespaces
    runtime_dir: str = ""
    runtime_dir_writable: bool = False


SYSCTLS = {
    "user.max_user_namespaces": Path("/proc/sys/user/max_user_namespaces"),
    "kernel.unprivileged_userns_clone": Path("/proc/sys/kernel/unprivileged_userns_clone"),
}


def read_account() -> Account:
    runtime_dir = os.environ.get("XDG_RUNTIME_DIR", "")
    return Account(
        name=_name(),
        uid=os.getuid(),
        subuid=system_text(Path("/etc/subuid")),
        subgid=system_text(Path("/etc/subgid")),
        mappers=tuple(name for name in ("newuidmap", "newgidmap") if shutil.which(name)),
        null_mode=stat.S_IMODE(NULL.stat().st_mode),
        namespaces=tuple(
            (name, int(value))
            for name, path in SYSCTLS.items()
            if (value := system_text(path).strip())
        ),
        runtime_dir=runtime_dir,
        runtime_dir_writable=bool(runtime_dir) and os.access(runtime_dir, os.W_OK),
    )


def check_rootless(account: Account) -> list[DoctorCheck]:
    """Return the checks of an account; root needs none."""
    if account.uid == 0:
        return []
    return [
        check_ids(account),
        check_mappers(account),
        check_null(account),
        check_namespaces(account),
        check_runtime_dir(account),
    ]


def check_ids(account: Account) -> DoctorCheck:
    counts = {
        "subuid": granted(account.subuid, account.name, account.uid),
        "subgid": granted(account.subgid, account.name, account.uid),
    }
    counts_shown = ", ".join(f"{count} in /etc/{name}" for name, count in counts.items())
    if min(counts.values()) >= IDS_NEEDED:
        return ok(IDS, counts_shown)
    return fail(
        IDS,
        f"{counts_shown}; an image's users need {IDS_NEEDED}",
        "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
        f"{account.name} (a range no other user has), then `podman system migrate`",
    )


def granted(table: str, name: str, uid: int) -> int:
    """Return how many ids /etc/subuid or /etc/subgid gives to a user, by name or number."""
    total = 0
    for line in table.splitlines():
        owner, _, rest = line.strip().partition(":")
        count = rest.partition(":")[2]
        if owner in {name, str(uid)} and count.isdigit():
            total += int(count)
    return total


def check_mappers(account: Account) -> DoctorCheck:
    missing = sorted({"newuidmap", "newgidmap"} - set(account.mappers))
    if not missing:
        return ok("id mapping", "newuidmap and newgidmap are there")
    return fail(
        "id mapping",
        f"{' and '.join(missing)} missing",
        "apt-get install uidmap / dnf install shadow-utils",
    )


def check_null(account: Account) -> DoctorCheck:
    mode_shown = f"mode {account.null_mode:04o}"
    if account.null_mode & 0o006 == 0o006:
        return ok("/dev/null", mode_shown)
    return fail(
        "/dev/null", f"{mode_shown}: users may not write to it", "as root: chmod 0666 /dev/null"
    )


def check_namespaces(account: Account) -> DoctorCheck:
    forbidden = [name for name, value in account.namespaces if value == 0]
    if not forbidden:
        return ok("user namespaces", "allowed")
    name = forbidden[0]
    value = 1 if name.endswith("clone") else 65536
    return fail("user namespaces", f"{name} is 0", f"as root: sysctl -w {name}={value}")


def check_runtime_dir(account: Account) -> DoctorCheck:
    if account.runtime_dir_writable:
        return ok("XDG_RUNTIME_DIR", account.runtime_dir)
    folder_shown = (
        f"{account.runtime_dir} cannot be written to" if account.runtime_dir else "not set"
    )
    return warn(
        "XDG_RUNTIME_DIR",
        folder_shown,
        f"log in through PAM (ssh, `machinectl shell {account.name}@`) rather than by su",
    )


def _name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return str(os.getuid())
