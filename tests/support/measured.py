"""Benches that measure a world: what a campaign asks of a laboratory, without any container."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from worlds import World

from dsharness.errors import InstanceError
from dsharness.measure.sample import PROCEDURE
from dsharness.model import Machine, Procedure, Sample, Setup, Workload


@dataclass
class WorldBenches:
    """Serves a world; ``refuses`` are the candidates whose server does not start."""

    world: World
    refuses: Sequence[str] = ()
    stop_after: int = 10_000
    machine: str = "one"
    identities: Mapping[str, str] = field(default_factory=dict)
    unmeasurable: Mapping[str, str] = field(default_factory=dict)
    taken: int = 0

    @property
    def setup(self) -> Setup:
        return Setup(machine=Machine(id=self.machine), procedure=Procedure(version=PROCEDURE))

    def ahead(self, candidates: Sequence[str]) -> None:
        pass

    def ready(self, candidate: str) -> None:
        if candidate in self.refuses:
            raise InstanceError(f"{candidate} did not become ready")

    def samples(
        self, candidates: Sequence[str], workload: Workload, *, campaign_id: str, turn: int
    ) -> Iterable[Sample]:
        del workload
        for candidate in candidates:
            if self.taken >= self.stop_after:
                raise KeyboardInterrupt
            self.taken += 1
            identity = {"id": str(uuid.uuid4()), "campaign_id": campaign_id}
            yield self.world.sample(candidate, turn).model_copy(update=identity)
