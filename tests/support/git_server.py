"""A git repository that other hosts can push to and fetch from: git's own daemon, for one test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dsharness.process.command import run
from dsharness.process.deadline import Deadline, wait_until


@contextmanager
def served_repository(folder: Path, address: str, within: Sequence[str]) -> Iterator[str]:
    """The URL of a bare repository that is made there; ``within`` begins its command lines."""
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    url = f"git://{address}{folder}"
    daemon = ["git", "daemon", "--export-all", "--enable=receive-pack", f"--listen={address}"]
    server = subprocess.Popen([*within, *daemon, str(folder)], stderr=subprocess.DEVNULL)
    try:
        wait_until(
            lambda: run([*within, "git", "ls-remote", url]).ok or None, Deadline.after(30),
            what="the git daemon",
        )  # fmt: skip
        yield url
    finally:
        server.terminate()
        server.wait()
