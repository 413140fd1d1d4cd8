"""Where a laboratory's time goes: each second counts once, for what was waited for."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

Kind = Literal["runs", "builds", "fills"]
KINDS: tuple[Kind, ...] = ("runs", "builds", "fills")  # of several at once, the first counts


class SpentTime:
    """A clock for what a lab does, in any of its threads; what is left is thinking."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._seen = now()
        self._going = Counter[Kind]()
        self._spent: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        self._told = dict(self._spent)

    @contextmanager
    def on(self, kind: Kind) -> Iterator[None]:
        """Count time for this until the block is left."""
        self._change(kind, 1)
        try:
            yield
        finally:
            self._change(kind, -1)

    @property
    def each_s(self) -> Mapping[Kind, float]:
        """Seconds of each kind so far."""
        with self._lock:
            self._count()
            return dict(self._spent)

    def since_last(self) -> dict[str, float]:
        """The same since it was asked this before, as ``TurnTime`` has it."""
        earlier, self._told = self._told, dict(self.each_s)
        return {f"{kind}_s": round(self._told[kind] - earlier[kind], 3) for kind in KINDS}

    def _change(self, kind: Kind, by: int) -> None:
        with self._lock:
            self._count()
            self._going[kind] += by

    def _count(self) -> None:
        """Add the time since the last change to the first kind that was going on."""
        now = self._now()
        going: Kind | None = next((kind for kind in KINDS if self._going[kind]), None)
        if going is not None:
            self._spent[going] += now - self._seen
        self._seen = now
