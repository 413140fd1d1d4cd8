"""Stopped while an image is built, between two workloads, while the report is printed.

Interruptions of golden states and of single workloads are in test_chain.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import secrets
import signal
import termios
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab import Running, dsbisect, small_matrix, start
from matrices import add_twin

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.containers.ownership import OWNER
from dsharness.errors import ExitCode
from dsharness.process.deadline import Deadline, wait_until
from dsimages.buildah import DRAFT, WORK
from dsresults.store import Store

pytestmark = pytest.mark.whole

TWIN = f"debian-12-{secrets.token_hex(3)}"
BOTH = ("--workload", "bind-one", "--workload", "bind-random")
ROWS = ("bisect", "rows", "--good", "debian-12", "--bad", "debian-13", *BOTH, "--json")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return detect()


def left_by(engine: Engine, pid: int) -> list[str]:
    """Containers, working containers and drafts of one process."""
    filtered = ("--all", "--filter", "label=dsbisect=1")
    boxes = json.loads(engine.must("ps", *filtered, "--format", "json") or "[]")
    mine = [b["Names"][0] for b in boxes if b["Labels"].get(OWNER, "").startswith(f"{pid}@")]
    working = engine.buildah("containers", "--all", "--format", "{{.ContainerName}}").stdout
    images = engine.images("--all", "--format", "{{.Repository}}:{{.Tag}}")
    owned = (f"{WORK}{pid}-", f"/{DRAFT}:{pid}-")
    return mine + [n for n in f"{working}\n{images}".splitlines() if any(o in n for o in owned)]


def wait_for(condition: Callable[[], object], what: str) -> None:
    wait_until(lambda: condition() or None, Deadline.after(120), what=what)


def interrupted(engine: Engine, lab: Running, number: int) -> str:
    """Its output at the end, which is an interruption's and leaves nothing."""
    status, rest = lab.end(number)
    assert status == ExitCode.INTERRUPTED, rest
    assert "Traceback" not in rest
    assert left_by(engine, lab.process.pid) == []
    return rest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_matrix(tmp_path)
    return tmp_path


@pytest.fixture
def new_row(folder: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A row that was never built, and an empty cache."""
    add_twin(folder / "matrix.yaml", "debian-12", TWIN, "tree")
    monkeypatch.setenv("DSBISECT_CACHE", str(folder / "cache"))
    yield TWIN
    # One label alone: podman takes several for "any of them", and would name everybody's images.
    for image in engine.images("--quiet", "--filter", f"label=dsbisect.row={TWIN}").split():
        engine.podman("rmi", "--force", image, cleanup=True)


def test_while_an_image_is_built(engine: Engine, folder: Path, new_row: str) -> None:
    command = ("measure", new_row, "--workload", "bind-one", "--runs", "1", "--json")
    lab = start(folder, *command)
    lab.until("installing 389-ds")
    wait_for(lambda: left_by(engine, lab.process.pid), "a working container")
    interrupted(engine, lab, signal.SIGTERM)
    again = dsbisect(folder, *command)
    assert again.returncode == 0, again.stderr
    (sample,) = json.loads(again.stdout)
    assert (sample["candidate_id"], sample["operations"] > 0) == (new_row, True)
    assert "image is ready" in again.stderr


def counts(folder: Path) -> Counter[str]:
    with Store.open(folder / "results.db") as store:
        return Counter(sample.workload_id for sample in store.samples())


def test_in_the_second_workload_and_then_in_the_report(engine: Engine, folder: Path) -> None:
    first = start(folder, *ROWS)
    first.until("workload bind-random")
    first.until("of about")
    interrupted(engine, first, signal.SIGINT)
    before = counts(folder)
    announced = sum(bool(re.search(r"\(\d+ of about", line)) for line in first.lines)
    assert before.total() >= announced > before["bind-random"] >= 1

    second = start(folder, *ROWS, "--output", str(folder / "report"))
    second.until(f"resuming bind-one: {before['bind-one']} samples")
    # Half a turn is taken again.
    second.until(f"resuming bind-random: {before['bind-random'] // 2 * 2} samples")
    second.until("bind-random: ")
    assert second.process.stdout is not None
    fill_up(second.process.stdout.fileno())
    rest = interrupted(engine, second, signal.SIGINT)
    assert "interrupted while the report was written" in rest
    assert counts(folder)["bind-one"] == before["bind-one"]  # nothing was measured twice
    with Store.open(folder / "results.db") as store:
        assert [c.boundary is not None for c in store.campaigns()] == [True, True]

    told = dsbisect(folder, "show", "--output", str(folder / "again"))
    assert told.returncode == 0, told.stderr
    assert (folder / "again" / "report.html").is_file()


def fill_up(reading: int) -> None:
    """Wait until nothing more fits into the pipe without a reader: it is printing the report."""
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, os.sysconf("SC_PAGESIZE"))
    waiting = array.array("i", [0])

    def full() -> bool:
        fcntl.ioctl(reading, termios.FIONREAD, waiting)
        return waiting[0] >= os.sysconf("SC_PAGESIZE")

    wait_for(full, "a full pipe")
