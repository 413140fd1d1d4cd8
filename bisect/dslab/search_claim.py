"""A claim on a search: held by one process at a time, renewed while it measures and builds."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dsharness.errors import BusyError, StoreError
from dsresults.store import Store
from dsresults.store.claims import STALE_S, Holder, this_process

BEAT_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One question of this process's own."""

    store: Store
    key: str
    what: str
    me: Holder = field(default_factory=this_process)
    lost: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """BusyError when another process has taken the search over."""
        if self.lost.is_set():
            raise BusyError(
                f"{self.what}: another process has taken over, since this one gave no sign "
                "of life for too long",
                hint="let it finish; it uses every stored sample",
            )

    def keep(self, ended: threading.Event, every_s: float) -> None:
        """Renew the claim again and again, whatever the main thread waits for."""
        while not ended.wait(every_s):
            with contextlib.suppress(StoreError):  # the next one may get through
                if not self.store.beat(self.key, self.me):
                    self.lost.set()
                    return


@contextmanager
def claimed(store: Store, key: str, what: str, *, every_s: float = BEAT_S) -> Iterator[Claim]:
    """Hold the claim inside the block, or BusyError with who has it."""
    claim = Claim(store=store, key=key, what=what)
    holder = store.claim(key, claim.me)
    if holder is not None:
        raise BusyError(
            f"{what}: the same search is already running: {holder}",
            hint="wait for it or end it; the same command then continues from its samples. "
            "A process "
            f"that cannot be checked counts as dead after {STALE_S / 60:.0f} minutes "
            "without a sign of life",
        )
    ended = threading.Event()
    keeper = threading.Thread(target=claim.keep, args=(ended, every_s), name="claim", daemon=True)
    keeper.start()
    try:
        yield claim
    finally:
        ended.set()
        keeper.join(timeout=5.0)
        with contextlib.suppress(StoreError):  # it would hide the real error; claims expire
            store.release(key, claim.me)
