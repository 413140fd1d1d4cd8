"""An ordinary user made for one test, who can run this checkout's Python."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = ("harness", "images", "builds", "results", "bisect", "products")
# The interpreter, its packages or the checkout may lie in a folder that only root may enter.
# In a mount namespace of the command's own they are bound to a place that anyone may read.
SHOW = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 97; shift 2; done; shift; exec "$@"'


@dataclass(frozen=True, kw_only=True)
class User:
    """A user with a home and a runtime folder, both below ``folder``."""

    name: str
    uid: int
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def python(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run this interpreter as the user, with nothing of the test's own environment."""
        seen = {"base": sys.base_prefix, "packages": site.getsitepackages()[0]}
        binds = [*seen.items(), *((name, str(CHECKOUT / name)) for name in SOURCES)]
        places = {name: self.folder / "seen" / name for name, _ in binds}
        mounts = [part for name, path in binds for part in (path, str(places[name]))]
        path = ":".join(str(places[name]) for name in ("packages", *SOURCES))
        variables = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.home),
            "USER": self.name,
            "LOGNAME": self.name,
            "XDG_RUNTIME_DIR": str(self.folder / "runtime"),
            "PYTHONPATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": str(places["base"] / "lib"),
            **environment,
        }
        interpreter = places["base"] / "bin" / f"python3.{sys.version_info.minor}"
        return subprocess.run(
            [
                "unshare", "--mount", "--propagation", "private", "sh", "-c", SHOW, "sh", *mounts,
                "--", "setpriv", "--reuid", str(self.uid), "--regid", str(self.uid),
                "--init-groups", "env", "-i", *(f"{k}={v}" for k, v in variables.items()),
                str(interpreter), *args,
            ],
            cwd=self.home, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip


@contextmanager
def unprivileged_user() -> Iterator[User]:
    """Made by useradd, which also grants subordinate ids; gone afterwards with all it ran."""
    _need_root_and_tools()
    name = f"dsb{secrets.token_hex(3)}"
    folder = Path(tempfile.mkdtemp(prefix="dsb-user-"))
    folder.chmod(0o755)
    subprocess.run(
        ["useradd", "--home-dir", str(folder / "home"), "--create-home", name], check=True
    )
    try:
        user = User(name=name, uid=pwd.getpwnam(name).pw_uid, folder=folder)
        (folder / "runtime").mkdir(mode=0o700)
        os.chown(folder / "runtime", user.uid, user.uid)
        for seen in ("base", "packages", *SOURCES):
            (folder / "seen" / seen).mkdir(parents=True)
        yield user
        end_processes(user.uid)
    finally:
        _remove(name)
        shutil.rmtree(folder, ignore_errors=True)


def _remove(name: str) -> None:
    """On a busy machine the last of its processes may take a moment to be gone."""
    for _ in range(10):
        end_processes(pwd.getpwnam(name).pw_uid)
        if subprocess.run(["userdel", name], check=False).returncode == 0:
            return
        time.sleep(1)
    raise AssertionError(f"{name} still has processes")


def _need_root_and_tools() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a user")
    absent = [
        tool for tool in ("useradd", "unshare", "setpriv", "newuidmap") if not shutil.which(tool)
    ]
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")


def end_processes(uid: int) -> None:
    """Rootless podman leaves one process that holds its namespace; end it by its id."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == uid:
                os.kill(int(folder.name), signal.SIGKILL)
