"""Benches that measure a world: what a campaign asks of a laboratory, without any container."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from worlds import World

from dsharness.errors import InstanceError
from dsharness.measure.sample import PROCEDURE
from dsharness.model import Machine, Procedure, Sample, Setup, Starts, Turn


def own(sample: Sample, turn: Turn) -> Sample:
    """The sample as this turn's own."""
    identity = {
        "id": turn.sample_id(sample.candidate_id),
        "campaign_id": turn.campaign_id,
        "attempt": turn.attempt,
    }
    return sample.model_copy(update=identity)


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

    def prepare_more(self, candidates: Sequence[str], starts: Starts = "kept") -> None: ...

    def ready(self, candidate: str) -> None:
        if candidate in self.refuses:
            raise InstanceError(f"{candidate} did not become ready")

    def take(self, turn: Turn) -> Iterable[Sample]:
        for candidate in turn.candidates:
            if self.taken >= self.stop_after:
                raise KeyboardInterrupt
            self.taken += 1
            yield own(self.world.sample(candidate, turn.number), turn)
