"""Builds of the next probable candidates, while nothing is measured.

While a sample is taken they are paused; where that is not possible, nothing is built ahead. They
use the CPU time that others leave free, and give way at once to what is needed now.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dsharness.errors import DsbisectError
from dsharness.process.brake import Brake

Make = Callable[[str], object]

MOST = 2  # what lies further ahead is a guess
LULL_S = 2.0  # continuing between two samples that follow each other would cost more than it gains
CLOSING_S = 60.0


class Ahead:
    """One worker that builds what may be needed next."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._changed = threading.Condition()
        self._asked: tuple[str, ...] = ()
        self._left: list[str] = []
        self._now: tuple[str, Brake] | None = None
        self._quiet = False  # from a sample's begin until nothing is measured for a while
        self._holding = threading.Lock()  # while builds are paused or continued
        self._measuring = False
        self._later: threading.Timer | None = None
        self._closed = False
        self._can_be_held = True
        self._worker: threading.Thread | None = None

    def want(self, candidates: Sequence[str]) -> None:
        """Build these when there is time, instead of what was asked for before."""
        asked = tuple(candidates[:MOST])
        with self._changed:
            if asked == self._asked or not self._can_be_held:
                return
            now = self._now
            self._asked = asked
            self._left = [each for each in asked if now is None or each != now[0]]
            self._changed.notify_all()
        if now is not None and now[0] not in asked:
            now[1].drop()
        if asked and self._worker is None:
            self._worker = threading.Thread(target=self._work, name="ahead", daemon=True)
            self._worker.start()

    def make_room(self, candidate: str) -> None:
        """This one is needed now: any other build ahead ends."""
        with self._changed:
            self._asked, self._left, now = (), [], self._now
        if now is not None and now[0] != candidate:
            now[1].drop()
        self._go_on()
        if now is not None and now[0] == candidate:
            now[1].hurry()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is built while the block measures, nor shortly after it."""
        self._measuring = True
        try:
            with self._holding:
                self._hold()
            yield
        finally:
            self._measuring = False
            self._later = threading.Timer(LULL_S, self._go_on)
            self._later.daemon = True
            self._later.start()

    def _hold(self) -> None:
        if self._later is not None:
            self._later.cancel()
        with self._changed:
            self._quiet, now = True, self._now
        if now is not None and not now[1].held:
            now[1].hold()
            self._can_be_held = now[1].can_be_held

    def _go_on(self) -> None:
        with self._holding:
            if self._measuring:
                return
            with self._changed:
                self._quiet, now = False, self._now
                self._changed.notify_all()
            if now is not None and now[1].held:
                now[1].release()

    def close(self) -> None:
        """Start nothing more, and end what is being built: it is no longer needed."""
        with self._changed:
            self._closed, now = True, self._now
            self._changed.notify_all()
        if self._later is not None:
            self._later.cancel()
        if now is not None:
            now[1].drop()
        if self._worker is not None:
            self._worker.join(timeout=CLOSING_S)

    def _work(self) -> None:
        while (begun := self._begin()) is not None:
            candidate, brake = begun
            # The search will get the same error when it asks for this candidate.
            try:
                with contextlib.suppress(DsbisectError), brake.bound():
                    self._make(candidate)
            finally:
                with self._changed:
                    self._now = None

    def _begin(self) -> tuple[str, Brake] | None:
        """The next one, between two samples; None when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or (self._left and not self._quiet))
            if self._closed:
                return None
            self._now = (self._left.pop(0), Brake())
            return self._now
