"""What a step costs, and how much may be spent. Core pure logic, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer

from dsbisect.search.question import History


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds, as far as they are known before the search; a log keeps them for the replay."""

    run_s: float = 15.0
    start_s: float = 2.0  # a server of a candidate that was not measured yet
    prepare_s: float = 40.0  # and its build, image and directory, unless they are ready
    ready: Annotated[frozenset[str], PlainSerializer(sorted)] = frozenset()
    paired: bool = False  # two candidates run at the same time, for the price of one

    def first_s(self, candidate: str) -> float:
        """What comes before the first run of a candidate."""
        return self.start_s + (0.0 if candidate in self.ready else self.prepare_s)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The search ends with the best set so far when one of these is spent."""

    runs: int = 2000
    builds: int | None = None  # different candidates
    seconds: float | None = None

    def spent(self, history: History, costs: Costs) -> str | None:
        """Which part is used up, in words; None while all go on."""
        runs = sum(len(group) for group in history.samples.values())
        if runs >= self.runs:
            return f"the budget of {self.runs} runs is spent"
        if self.seconds is not None and self.used_s(history, costs) >= self.seconds:
            return f"the budget of {self.seconds:.0f} seconds is spent"
        return None

    def used_s(self, history: History, costs: Costs) -> float:
        """By the costs that were foreseen: a replay comes to the same figure."""
        runs = sum(len(group) for group in history.samples.values())
        return runs * costs.run_s + sum(costs.first_s(name) for name in _measured(history))

    def may_build(self, history: History) -> bool:
        return self.builds is None or len(_measured(history)) < self.builds


def _measured(history: History) -> list[str]:
    return [name for name, group in history.samples.items() if group]
