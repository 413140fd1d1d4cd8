"""A real PostgreSQL for one test module, which only a socket in its folder leads to."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import pytest

ACCESS = """
local all guarded scram-sha-256
local all all trust
"""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A running server that only a socket in ``folder`` leads to."""

    folder: Path
    user: str
    control: Callable[..., None]  # pg_ctl with these arguments

    def restart(self) -> None:
        """End it at once, as a crash does, and start it again."""
        self.control("restart", "-w", "-m", "immediate", "-l", str(self.folder / "log"))

    def url(self, database: str, user: str = "") -> str:
        return f"postgresql://{user or self.user}@/{database}?host={self.folder}"

    def execute(self, *statements: str, database: str = "postgres") -> None:
        address = f"host={self.folder} user={self.user} dbname={database}"
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def new_database(self) -> str:
        name = f"lab_{uuid.uuid4().hex[:8]}"
        self.execute(f"CREATE DATABASE {name}")
        return name


def installed() -> Path | None:
    """The newest PostgreSQL of this machine; Debian keeps it off the PATH."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(re.sub(r"\D.*", "", path.parts[4]) or 0),
    )
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster of the test's own; the test is skipped where none is installed."""
    binaries = installed()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    owner = pwd.getpwuid(os.geteuid()).pw_name if os.geteuid() else "postgres"
    prefix = [] if os.geteuid() else ["runuser", "-u", owner, "--"]
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path must be short

    def run(program: str, *arguments: str) -> None:
        command = [*prefix, str(binaries / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)

    try:
        if not os.geteuid():
            shutil.chown(folder, owner)
        run("initdb", "-A", "trust", "-U", owner, "-E", "UTF8", "--locale=C", "--no-sync")
        (folder / "data" / "pg_hba.conf").write_text(ACCESS)
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        run("pg_ctl", "start", "-w", "-l", str(folder / "log"), "-o", options)
        try:
            yield Cluster(folder=folder, user=owner, control=partial(run, "pg_ctl"))
        finally:
            run("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder)
