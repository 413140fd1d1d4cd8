"""A real PostgreSQL for one test module: a socket in its folder leads to it, and TLS if asked."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import pytest
from own_authority import AUTHORITY, CERTIFICATE, KEY, sign

ACCESS = """
local all guarded scram-sha-256
local all all trust
"""
TLS_ACCESS = "hostssl all all all scram-sha-256\n"  # and nobody without TLS


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A running server; a socket in ``folder`` leads to it."""

    folder: Path
    user: str
    control: Callable[..., None]  # pg_ctl with these arguments
    address: str = ""  # where it listens, with TLS; none as a rule

    def restart(self) -> None:
        """End it at once, as a crash does, and start it again."""
        self.control("restart", "-w", "-m", "immediate", "-l", str(self.folder / "log"))

    def url(self, database: str, user: str = "") -> str:
        return f"postgresql://{user or self.user}@/{database}?host={self.folder}"

    def tls_url(self, database: str, user: str) -> str:
        """For other hosts, where it listens; whoever answers has to prove that it is this one."""
        return (
            f"postgresql://{user}@{self.address}/{database}"
            f"?sslmode=verify-full&sslrootcert={self.folder / AUTHORITY}"
        )

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
def running_cluster(*, address: str = "", within: Sequence[str] = ()) -> Iterator[Cluster]:
    """A cluster of the test's own; the test is skipped where none is installed.

    ``within`` is what its command lines begin with. With an ``address`` it listens there too.
    """
    binaries = installed()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    owner = pwd.getpwuid(os.geteuid()).pw_name if os.geteuid() else "postgres"
    prefix = [*within, *([] if os.geteuid() else ["runuser", "-u", owner, "--"])]
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path must be short

    def run(program: str, *arguments: str) -> None:
        command = [*prefix, str(binaries / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)

    try:
        if address:
            sign(folder, address)
        if not os.geteuid():
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, owner)
        run("initdb", "-A", "trust", "-U", owner, "-E", "UTF8", "--locale=C", "--no-sync")
        (folder / "data" / "pg_hba.conf").write_text(ACCESS + (TLS_ACCESS if address else ""))
        options = f"-c listen_addresses='{address}' -c fsync=off -k {folder}"
        if address:
            files = {"ssl_cert_file": CERTIFICATE, "ssl_key_file": KEY}
            options += " -c ssl=on"
            options += "".join(f" -c {name}={folder / file}" for name, file in files.items())
        run("pg_ctl", "start", "-w", "-l", str(folder / "log"), "-o", options)
        try:
            control = partial(run, "pg_ctl")
            yield Cluster(folder=folder, user=owner, control=control, address=address)
        finally:
            run("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder)
