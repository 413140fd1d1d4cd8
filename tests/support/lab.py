"""A small laboratory for real tests: the Debian rows with few users and short runs."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from ruamel.yaml import YAML

from dsharness.containers.engine_probe import detect
from dsharness.matrix import find_series, load_matrix
from dsharness.process.deadline import Deadline
from dsimages.image_set import build_images
from dsresults.store import Store

ROOT = Path(__file__).parents[2]
USERS = 200  # more than any NSS keeps results for
# What these tests compare differs several times: runs need not be as long as a user's.
SHORT = {"duration_s": 0.6, "operations": 60, "most_s": 2.0}


@functools.cache
def lock_debian_rows() -> None:
    """Have the images of the Debian rows, and the lock of the project's matrix that names them.

    Where a lock does not know a row, its packages are installed again: without this, in the folder
    of every test of a fresh clone. A row that is not available fails the tests that need it.
    """
    matrix = load_matrix(ROOT / "matrix.yaml")
    series = find_series(matrix, matrix.defaults.series)
    rows = [matrix.row(name) for name in series.rows]
    build_images(detect(), matrix, rows, on_progress=lambda *_: None)


def small_matrix(folder: Path, users: int = USERS, **changes: Any) -> Path:
    """matrix.yaml with few users and its own lock; ``changes`` go by row id."""
    lock_debian_rows()
    yaml = YAML()
    document = yaml.load(ROOT / "matrix.yaml")
    for workload in document["workloads"]:
        if workload["tool"] != "ldclt":
            continue
        workload["users"] = users
        workload["distinct_users"] = min(workload["distinct_users"], users, USERS)
        workload.update(SHORT)
    for row in document["rows"]:
        if row["id"] in changes:
            row["versions"].update(changes[row["id"]])
    path = folder / "matrix.yaml"
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(document, stream)
    lock = ROOT / "matrix.lock"
    if lock.exists():
        shutil.copy(lock, folder)
    return path


@dataclass
class Running:
    """A dsbisect started in a folder of its own, read line by line."""

    process: subprocess.Popen[str]
    deadline: Deadline = field(default_factory=lambda: Deadline.after(600))
    lines: list[str] = field(default_factory=list)

    def until(self, words: str) -> str:
        """Read what it tells on standard error until a line with these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            assert not self.deadline.passed, "".join(self.lines)
            if words in line:
                return line
        raise AssertionError(f"never said {words!r}:\n{''.join(self.lines)}")

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal and wait; its status and the rest of its output."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> tuple[int, str]:
        _, rest = self.process.communicate(timeout=self.deadline.left_s)
        return self.process.returncode, rest


def argv(*args: str) -> list[str]:
    return [sys.executable, "-c", "from dsbisect.program import main; main()", *args]


def start(
    folder: Path,
    *args: str,
    within: Sequence[str] = (),
    errors: int | TextIO = subprocess.PIPE,
) -> Running:
    """Start it; ``within`` is what its command line begins with."""
    process = subprocess.Popen(
        [*within, *argv(*args)], cwd=folder, env=environment(folder), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
    )  # fmt: skip
    return Running(process)


def dsbisect(
    folder: Path, *args: str, limit_s: float = 600, within: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*within, *argv(*args)], cwd=folder, env=environment(folder), text=True, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s,
    )  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DSBISECT_MATRIX": str(folder / "matrix.yaml"),
        "DSBISECT_STORE": str(folder / "results.db"),
        "COLUMNS": "120",
    }


def stored_samples(folder: Path) -> dict[str, int]:
    """How many samples each load has."""
    with Store.open(f"sqlite:///{folder}/results.db") as store:
        return {
            campaign.workload_id: len(store.samples(campaign_id=campaign.id))
            for campaign in store.campaigns()
        }
