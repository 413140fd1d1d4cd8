"""What an unprivileged user needs for containers."""

from __future__ import annotations

import getpass
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from dsharness.doctor.doctor_check import DoctorCheck, fail, ok, warn

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
        subuid=_text(Path("/etc/subuid")),
        subgid=_text(Path("/etc/subgid")),
        mappers=tuple(name for name in ("newuidmap", "newgidmap") if shutil.which(name)),
        null_mode=stat.S_IMODE(NULL.stat().st_mode),
        namespaces=tuple(
            (name, int(value)) for name, path in SYSCTLS.items() if (value := _text(path).strip())
        ),
        runtime_dir=runtime_dir,
        runtime_dir_writable=bool(runtime_dir) and os.access(runtime_dir, os.W_OK),
    )


def check_rootless(account: Account) -> list[DoctorCheck]:
    """Nothing to check for root."""
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
    seen = ", ".join(f"{count} in /etc/{name}" for name, count in counts.items())
    if min(counts.values()) >= IDS_NEEDED:
        return ok(IDS, seen)
    return fail(
        IDS,
        f"{seen}; an image's users need {IDS_NEEDED}",
        "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
        f"{account.name} (a range no other user has), then `podman system migrate`",
    )


def granted(table: str, name: str, uid: int) -> int:
    """How many ids /etc/subuid or /etc/subgid gives to a user, by name or number."""
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
    seen = f"mode {account.null_mode:04o}"
    if account.null_mode & 0o006 == 0o006:
        return ok("/dev/null", seen)
    return fail("/dev/null", f"{seen}: users may not write to it", "as root: chmod 0666 /dev/null")


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
    seen = f"{account.runtime_dir} cannot be written to" if account.runtime_dir else "not set"
    return warn(
        "XDG_RUNTIME_DIR",
        seen,
        f"log in through PAM (ssh, `machinectl shell {account.name}@`) rather than by su",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return str(os.getuid())
