"""One cell of a table: a kind of world, and the searches that play it."""

from __future__ import annotations

from dataclasses import dataclass

from searchbench.kinds import Kind
from searchbench.machine import MOST_RUNS

LAST_SEED = 1000  # from here on, seeds are for tuning the search
FOR_TARGETS = 6  # times the histories of a table: a share of 95 % has an error of 1.5 %
FEWER_RUNS = 800  # eight times what proving a step of d = 1 takes


@dataclass(frozen=True, kw_only=True)
class Cell:
    group: str  # a table of the report
    kind: Kind
    methods: tuple[str, ...]
    share: float = 1.0  # of the worlds that were asked for
    least: int = 4
    first_seed: int = 0
    most_runs: int = MOST_RUNS  # of one history
    held: frozenset[str] = frozenset()  # searches that a target is about: they play more histories

    def seeds(self, worlds: int, method: str = "") -> range:
        share = self.share * (FOR_TARGETS if method in self.held else 1)
        count = min(LAST_SEED, max(self.least, round(share * worlds)))
        return range(self.first_seed, self.first_seed + count)

    @property
    def label(self) -> str:
        return self.kind.label
