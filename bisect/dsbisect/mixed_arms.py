"""Servers that are made of two rows: one row's, with parts as the other one holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from dsharness.measure.golden_state import Golden
from dsharness.measure.instance import part_of
from dsharness.model import Workload
from dsharness.progress import Progress
from dsharness.systems import Seed
from dsharness.systems.system import Part
from dslab.candidates import ArmSupply
from dsresults.compare.difference_shares import SERVER
from dsresults.compare.factor_shares import State


@dataclass(frozen=True, kw_only=True)
class MixedArm:
    """One row's server, with these parts as the other row's server holds them."""

    row: str
    other: str
    taken: tuple[Part, ...] = ()

    @property
    def name(self) -> str:
        parts_taken = "-".join(part.name for part in self.taken)
        return f"{self.row}-with-{parts_taken}-of-{self.other}" if parts_taken else self.row


def arms_of(fast: str, slow: str, parts: Sequence[Part]) -> dict[State, MixedArm]:
    """Every arm, by what in it is as on the slow side; the fast side first, the slow one last."""
    arms: dict[State, MixedArm] = {}
    subsets = [subset for size in range(len(parts) + 1) for subset in combinations(parts, size)]
    for row, other_row in ((fast, slow), (slow, fast)):
        for parts_taken in subsets if row == fast else subsets[::-1]:
            as_slow = (
                parts_taken if row == fast else [part for part in parts if part not in parts_taken]
            )
            state = {part.name for part in as_slow} | ({SERVER} if row == slow else set())
            arms[frozenset(state)] = MixedArm(row=row, other=other_row, taken=parts_taken)
    return arms


@dataclass(frozen=True, kw_only=True)
class MixedSupply(ArmSupply):
    """Two rows, then arms that are made of both."""

    arms: Mapping[str, MixedArm]
    goldens: dict[str, Golden] = field(default_factory=dict)  # of the rows themselves

    def left(self) -> tuple[str, ...]:
        mixed = (name for name, arm in self.arms.items() if arm.taken)
        return tuple(mixed) if len(self.goldens) == 2 else ()

    def seed(self, candidate: str, common: Seed, progress: Progress) -> Seed:
        arm = self.arms[candidate]
        parts_taken = (
            part_of(self.engine, self.goldens[arm.other], part, progress=progress)
            for part in arm.taken
        )
        return Seed(content=common.content, settings=common.settings, taken=tuple(parts_taken))

    def check(self, candidate: str, golden: Golden) -> None:
        if not self.arms[candidate].taken:  # edits promise nothing of what another one stores
            super().check(candidate, golden)
            self.goldens[candidate] = golden


def parts_for(workload: Workload, parts: Iterable[Part]) -> tuple[Part, ...]:
    """Those that can change what this load costs."""
    operations = set(workload.operation.split("+"))
    return tuple(part for part in parts if part.operations & operations)
