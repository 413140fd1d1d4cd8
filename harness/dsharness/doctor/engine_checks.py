"""The container engine: does it start containers, build, pin, bound, and let itself be metered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsharness.containers.engine import AS_IT_IS, Engine
from dsharness.doctor.doctor_check import DoctorCheck, fail, ok, warn
from dsharness.errors import EngineError

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
    """By which means a container's CPU time was read, or why it could not be."""

    source: str = ""
    problem: str = ""


def check_engine(probed: Engine | EngineError) -> DoctorCheck:
    """Whether containers start, with which settings, and why those were needed."""
    if isinstance(probed, EngineError):
        return fail("containers", probed.message, fix_for(f"{probed.message} {probed.hint}"))
    if probed.plan == AS_IT_IS:
        return ok("containers", "they start with podman with its own configuration")
    why = "; ".join(reason(note) for note in unlike(probed.notes))
    return ok(
        "containers",
        f"they start with {probed.plan}, written to {probed.configuration}, because: {why}",
    )


def unlike(notes: tuple[str, ...]) -> list[str]:
    """The first of each message: several configurations often fail in the same way."""
    firsts: dict[str, str] = {}
    for note in notes:
        firsts.setdefault(reason(note), note)
    return list(firsts.values())


def reason(note: str) -> str:
    """Podman's message, without the configuration that was tried and without its prefix."""
    return note.partition(": ")[2].removeprefix("Error: ")


def fix_for(complaint: str) -> str:
    """The step that helps against what podman complains of."""
    text = complaint.lower()
    found = next((fix for sign, fix in _FIXES if sign in text), None)
    return found or "`podman run --rm --log-level debug ...` says more; `podman info` must work"


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
