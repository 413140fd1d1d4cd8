"""Builds of the next probable candidates, in the time that nothing is measured.

While a sample is taken their containers are frozen; where the engine cannot freeze, nothing is
built ahead at all.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dsharness.engine import Engine
from dsharness.errors import DsbisectError
from dsharness.ownership import OWNER, owner_tag, remove

Make = Callable[[str], object]

MOST = 2  # what lies further ahead is a guess


class Ahead:
    """One worker that builds what may be wanted next."""

    def __init__(self, engine: Engine, make: Make) -> None:
        self._engine = engine
        self._make = make
        self._wanted: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._quiet = threading.Lock()  # held while something is measured
        self._asked: tuple[str, ...] = ()
        self._worker: threading.Thread | None = None
        self._freezes = True

    def want(self, candidates: Sequence[str]) -> None:
        """Build these when there is time, and nothing any more of what was wanted before.

        What was begun already goes on: whoever needs a build waits for this one at most.
        """
        asked = tuple(candidates[:MOST])
        if asked == self._asked:
            return
        self._asked = asked
        self._forget()
        if not asked or not self._freezes:
            return
        for candidate in asked:
            self._wanted.put(candidate)
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="ahead", daemon=True)
            self._worker.start()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is built while the block measures."""
        with self._quiet:
            frozen = self._freeze() if self._worker is not None else []
            try:
                yield
            finally:
                if frozen:
                    self._engine.podman("unpause", *frozen, cleanup=True)

    def close(self) -> None:
        """Begin nothing more, and end what is being built: nobody wants it any more."""
        if self._worker is None:
            return
        self._forget()
        self._wanted.put(None)
        while self._worker.is_alive():
            for name in self._building():
                remove(self._engine, name)
            self._worker.join(timeout=1.0)

    def _forget(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._wanted.get_nowait()

    def _work(self) -> None:
        while (candidate := self._wanted.get()) is not None:
            with self._quiet:  # a build begins between two samples, never within one
                pass
            # Whatever it is, the search will meet it again when it asks for this candidate.
            with contextlib.suppress(DsbisectError):
                self._make(candidate)

    def _building(self) -> list[str]:
        listed = self._engine.podman(
            "ps", "--quiet", "--filter", f"label={OWNER}={owner_tag(os.getpid())}",
            "--filter", "name=dsbisect-build", "--filter", "status=running", cleanup=True,
        )  # fmt: skip
        return listed.stdout.split()

    def _freeze(self) -> list[str]:
        names = self._building()
        if names and not self._engine.podman("pause", *names).ok:
            self._freezes = False
            return []
        return names
