"""Reads what a shared run asks, of either kind."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from dsbisect.commits.shared_commits import SharedCommits
from dsbisect.shared_request import follow_lock
from dsbisect.shared_rows import SharedRows
from dsharness.model import SharedRun

Shared = SharedRows | SharedCommits


@dataclass(frozen=True, kw_only=True)
class SharedStudies:
    """Reads requests, each once; ``fetched`` brings what commits need onto this machine, too."""

    fetched: bool = False
    known: dict[str, Shared] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, run: SharedRun) -> Shared:
        with self._reading:
            if run.id not in self.known:
                study = shared_study(run)
                if self.fetched and isinstance(study, SharedCommits):
                    _ = study.scope
                self.known[run.id] = study
            follow_lock(run)  # another machine may have been the first since
            return self.known[run.id]


def shared_study(run: SharedRun) -> Shared:
    """What a run asks."""
    return SharedCommits.of(run) if run.request.get("kind") == "commits" else SharedRows.of(run)
