"""Pausing what one thread runs while something else is measured.

A command passes the brake before it starts. One that runs when the brake is put on stands still
with its container (podman exec), is stopped (git), or is waited for (other podman and buildah
commands hold locks that a measurement needs). What cannot be brought to a standstill is dropped:
it is ended, and nothing more of it is started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from dsharness.errors import StoppedError

GRACE_S = 5.0  # for a command that cannot be stopped half-way
SETTLED_S = 1.0  # a younger podman exec may not have reached its container
ASKED_S = 3.0  # for a build that was asked to end
DROPPED_S = 60.0  # for all that it held
LOW, FULL = 32, 1024  # parts of the CPUs, where others want them too


class Box(Protocol):
    """A container, as far as holding it goes."""

    def pause(self) -> bool: ...

    def resume(self) -> None: ...

    def ask_to_end(self) -> None: ...

    def discard(self) -> None: ...

    def weigh(self, shares: int) -> None:
        """Give it this part of the CPUs where others want them too."""
        ...


class BrakeKind(Enum):
    """How a command comes to a standstill."""

    INSIDE = auto()  # with the container that it runs in
    STOPPABLE = auto()  # by a signal
    SHORT = auto()  # by its end


def manner_of(argv: Sequence[str]) -> BrakeKind:
    if argv[0] == "podman":
        return BrakeKind.INSIDE if argv[1] == "exec" else BrakeKind.SHORT
    return BrakeKind.SHORT if argv[0] == "buildah" else BrakeKind.STOPPABLE


@dataclass(frozen=True, kw_only=True)
class Command:
    """One that runs now."""

    child: subprocess.Popen[bytes]
    manner: BrakeKind
    since: float
    end: Callable[[], None]

    @property
    def still(self) -> bool:
        """Whether it stands, once its container and its processes are stopped."""
        settled = time.monotonic() - self.since >= SETTLED_S
        return self.manner is BrakeKind.STOPPABLE or (self.manner is BrakeKind.INSIDE and settled)

    def signal(self, number: int) -> None:
        if self.manner is BrakeKind.STOPPABLE and self.child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, number)


class Brake:
    """On one piece of work of one thread; others put it on, take it off, or drop the work."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._moving = True  # by itself: neither in a command, nor waiting here, nor at its end
        self._ended = False
        self._command: Command | None = None
        self._boxes: list[Box] = []
        self._paused: list[Box] = []
        self._shares = LOW
        self.held = False
        self.dropped = False
        self.can_be_held = True  # as far as was tried: not every engine can pause a container

    @contextmanager
    def bound(self) -> Iterator[None]:
        """All that this thread runs within the block is held by this brake."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)
            self._set(moving=False, ended=True)

    def wait(self, *, cleanup: bool = False, seconds: float = 0.0) -> None:
        """For ``seconds``, and while the brake is on; StoppedError once the work is dropped."""
        with self._changed:
            self._moving = False
            self._changed.notify_all()
            if seconds:
                self._changed.wait_for(lambda: self.dropped, timeout=seconds)
            self._changed.wait_for(lambda: self.dropped or not self.held)
            self._moving = True
            if self.dropped and not cleanup:
                raise StoppedError("it is no longer needed")

    @contextmanager
    def running(
        self, child: subprocess.Popen[bytes], argv: Sequence[str], end: Callable[[], None]
    ) -> Iterator[None]:
        """A command of this thread, from its start to its end."""
        now = Command(child=child, manner=manner_of(argv), since=time.monotonic(), end=end)
        self._set(moving=False, command=now)
        try:
            yield
        finally:
            self._set(moving=True, command=None)

    @contextmanager
    def joined(self, box: Box) -> Iterator[None]:
        """A container of this thread."""
        with self._changed:
            self._boxes.append(box)
            shares = self._shares
        try:
            box.weigh(shares)
            yield
        finally:
            with self._changed:
                self._boxes.remove(box)

    def hold(self) -> None:
        """Bring all to a standstill; what cannot be is dropped."""
        self.held = True
        if self._await(self._still, GRACE_S):
            self.can_be_held = all(self._pause(box) for box in self._known())
            self._signal(signal.SIGSTOP)
            if self.can_be_held and self._await(self._still, GRACE_S):
                return
        self.drop()

    def release(self) -> None:
        """Let it all go on."""
        self._resume()
        with self._changed:
            self.held = False
            self._changed.notify_all()

    def hurry(self) -> None:
        """It is needed now: it gets its full share of the CPUs."""
        with self._changed:
            self._shares = FULL
        for box in self._known():
            box.weigh(FULL)

    def drop(self) -> None:
        """End the work, and wait until everything of it has ended."""
        with self._changed:
            self.dropped = True
            command = self._command
            self._changed.notify_all()
        self._resume()
        boxes = self._known()
        for box in boxes:
            box.ask_to_end()
        self._end(command)
        for box in boxes:
            box.discard()
        self._await(lambda: self._ended, DROPPED_S)

    def _end(self, command: Command | None) -> None:
        """A podman that is cut short may leave a container that it has just begun."""
        if command is None:
            return
        patience_s = {BrakeKind.INSIDE: ASKED_S, BrakeKind.STOPPABLE: 0.0, BrakeKind.SHORT: GRACE_S}
        ended = self._await(lambda: self._command is not command, patience_s[command.manner])
        if not ended and command.manner is not BrakeKind.INSIDE:
            command.end()

    def _still(self) -> bool:
        return not self._moving and (self._command is None or self._command.still)

    def _known(self) -> tuple[Box, ...]:
        with self._changed:
            return tuple(self._boxes)

    def _pause(self, box: Box) -> bool:
        paused = box.pause()
        if paused:
            self._paused.append(box)
        return paused

    def _resume(self) -> None:
        while self._paused:
            self._paused.pop().resume()
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        with self._changed:
            if self._command is not None:
                self._command.signal(number)

    def _set(self, *, moving: bool, command: Command | None = None, ended: bool = False) -> None:
        with self._changed:
            self._moving, self._command, self._ended = moving, command, ended
            self._changed.notify_all()

    def _await(self, done: Callable[[], bool], seconds: float) -> bool:
        limit = time.monotonic() + seconds
        with self._changed:
            while not done():
                left = limit - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.05))  # a command settles without a word
            return True


_current: ContextVar[Brake | None] = ContextVar("brake", default=None)


def own_brake() -> Brake | None:
    """The brake of this thread; None for nearly every one."""
    return _current.get()


def nap(seconds: float) -> None:
    """Sleep; a thread with a brake wakes when its work is dropped."""
    brake = own_brake()
    if brake is None:
        time.sleep(seconds)
    else:
        brake.wait(seconds=seconds)


@contextmanager
def holdable(
    child: subprocess.Popen[bytes], argv: Sequence[str], end: Callable[[], None], *, cleanup: bool
) -> Iterator[None]:
    """A command that runs, known to this thread's brake if it has one."""
    brake = own_brake()
    with contextlib.nullcontext() if brake is None else brake.running(child, argv, end):
        yield
    if brake is not None and brake.dropped and child.returncode != 0 and not cleanup:
        # It was ended from here, so it is not the failure of a candidate.
        raise StoppedError(f"{argv[0]} was ended: it is no longer needed")


@contextmanager
def holdable_box(box: Box) -> Iterator[None]:
    """A container of this thread, known to its brake if it has one."""
    brake = own_brake()
    with contextlib.nullcontext() if brake is None else brake.joined(box):
        yield
