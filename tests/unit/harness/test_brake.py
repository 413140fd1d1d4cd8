"""What one thread runs stands still while another measures, on real processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dsharness.errors import StoppedError
from dsharness.process import brake as braking
from dsharness.process.brake import Brake, BrakeKind, holdable_box, manner_of, nap
from dsharness.process.command import run
from dsharness.process.deadline import Deadline, wait_until

TICKING = 'while :; do echo >>"$0"; sleep 0.02; done'
# Takes as long as requested, and leaves a mark at its end.
PROGRAM = """#!/bin/sh
sleep "${TAKES:-0}"
echo "$*" >>"$ENDED"
"""


@dataclass
class Work:
    """A thread with a brake; what it raised is kept."""

    job: Callable[[], object]
    brake: Brake = field(default_factory=Brake)
    failed: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with self.brake.bound():
                self.job()
        except StoppedError as error:
            self.failed.append(error)


@dataclass
class Box:
    """A container that notes what is done to it."""

    pauses: bool = True
    done: list[str] = field(default_factory=list)

    def pause(self) -> bool:
        self.done.append("pause")
        return self.pauses

    def resume(self) -> None:
        self.done.append("resume")

    def ask_to_end(self) -> None:
        self.done.append("ask")

    def discard(self) -> None:
        self.done.append("discard")

    def weigh(self, shares: int) -> None:
        self.done.append(f"weigh {shares}")


@pytest.fixture
def ticks(tmp_path: Path) -> Path:
    return tmp_path / "ticks"


def begun(ticks: Path) -> None:
    wait_until(lambda: ticks.exists() or None, Deadline.after(20), what="the first tick")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A podman and a git that take their time."""
    for name in ("podman", "git"):
        (tmp_path / name).write_text(PROGRAM)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("ENDED", str(tmp_path / "ended"))
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (("podman", "exec", "x", "make"), BrakeKind.INSIDE),
        (("podman", "run", "x"), BrakeKind.SHORT),
        (("buildah", "build"), BrakeKind.SHORT),
        (("git", "fetch"), BrakeKind.STOPPABLE),
    ],
)
def test_how_a_command_comes_to_a_standstill(argv: tuple[str, ...], options: BrakeKind) -> None:
    assert manner_of(argv) is options


def test_a_process_stands_still_and_goes_on(ticks: Path) -> None:
    work = Work(lambda: run(["sh", "-c", TICKING, str(ticks)]))
    begun(ticks)
    work.brake.hold()
    frozen = ticks.stat().st_size
    time.sleep(0.3)
    assert ticks.stat().st_size <= frozen + 1
    work.brake.release()
    wait_until(
        lambda: ticks.stat().st_size > frozen + 2 or None, Deadline.after(20), what="it to go on"
    )
    work.brake.drop()
    work.thread.join(timeout=10)
    assert [type(error) for error in work.failed] == [StoppedError]


def test_nothing_new_is_started_while_it_is_held(ticks: Path) -> None:
    go = threading.Event()
    work = Work(lambda: (go.wait(), run(["touch", str(ticks)])))
    threading.Timer(0.2, go.set).start()
    work.brake.hold()  # waits for the thread to come to the gate
    time.sleep(0.2)
    assert not ticks.exists()
    work.brake.release()
    work.thread.join(timeout=10)
    assert ticks.exists()
    assert not work.failed


def test_what_holds_the_engines_locks_is_waited_for(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAKES", "0.5")
    work = Work(lambda: run(["podman", "run", "x"]))
    time.sleep(0.2)
    work.brake.hold()
    assert (programs / "ended").read_text() == "run x\n"
    assert not work.brake.dropped
    work.brake.release()


def test_what_takes_too_long_to_end_is_dropped(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAKES", "60")
    monkeypatch.setattr(braking, "GRACE_S", 0.2)
    work = Work(lambda: run(["podman", "run", "x"]))
    time.sleep(0.1)
    work.brake.hold()
    assert work.brake.dropped
    assert work.brake.can_be_held, "another one may be"
    work.thread.join(timeout=10)
    assert work.failed


def in_a_box(box: Box) -> None:
    with holdable_box(box):
        run(["podman", "exec", "x"])


@pytest.mark.parametrize("pauses", [True, False])
def test_a_container_is_paused_or_the_work_is_dropped(
    programs: Path, monkeypatch: pytest.MonkeyPatch, pauses: bool
) -> None:
    monkeypatch.setenv("TAKES", "2")
    monkeypatch.setattr(braking, "SETTLED_S", 0.1)
    monkeypatch.setattr(braking, "ASKED_S", 0.1)
    box = Box(pauses=pauses)
    work = Work(lambda: in_a_box(box))
    wait_until(lambda: box.done or None, Deadline.after(10), what="the container")
    work.brake.hold()
    assert work.brake.can_be_held is pauses
    if pauses:
        assert box.done == ["weigh 32", "pause"]
        work.brake.release()
        work.brake.hurry()
        assert box.done[2:] == ["resume", "weigh 1024"]
    else:
        assert box.done == ["weigh 32", "pause", "ask", "discard"]
    work.thread.join(timeout=10)
    assert not work.thread.is_alive()


def test_cleaning_up_goes_on_when_the_work_is_dropped(ticks: Path) -> None:
    def job() -> None:
        try:
            nap(60)
        finally:
            run(["touch", str(ticks)], cleanup=True)

    work = Work(job)
    began = time.monotonic()
    work.brake.drop()
    assert time.monotonic() - began < 5
    assert ticks.exists()
    assert work.failed


def test_a_thread_without_a_brake_minds_none(ticks: Path) -> None:
    brake = Brake()
    brake.held = True
    assert run(["touch", str(ticks)]).ok
    nap(0)
