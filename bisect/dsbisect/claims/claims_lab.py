"""What all experiments with claims share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dsbisect.study_lab import Scene, ThisMachine
from dsharness.containers.engine import Engine
from dsharness.machine.host import CpuShares, available_cpus, share_cpus
from dsharness.measure.golden_state import Golden
from dsharness.model import Content, Matrix, Settings
from dsharness.systems import Seed
from dslab.candidates import RowSupply
from dslab.observer import Observer
from dsresults.compare.claim_outcomes import ClaimAnswer
from dsresults.store import Store

DEFAULT = Settings(id="default", title="what the package sets")


class ClaimsObserver(Observer, Protocol):
    """An observer that is also told which experiment begins, and what each claim came to."""

    def began(self, what: str, left_s: float) -> None: ...

    def judged(self, claim: ClaimAnswer) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ClaimsLab:
    """Where experiments take place."""

    matrix: Matrix
    engine: Engine
    store: Store
    observer: ClaimsObserver
    command: str = ""
    repository: str | None = None
    relock: bool = False
    keep: bool = False

    @property
    def cpus(self) -> CpuShares:
        return share_cpus(available_cpus(), can_pin=self.engine.pins_cpus)

    @property
    def machine(self) -> ThisMachine:
        """Who plays a study for a claim."""
        return ThisMachine(
            scene=Scene(matrix=self.matrix),
            engine=self.engine,
            store=self.store,
            observer=self.observer,
            relock=self.relock,
            keep=self.keep,
        )

    def golden(self, row: str, content: Content, settings: Settings = DEFAULT) -> Golden:
        """A row's server, filled; a CandidateError where that fails."""

        def show(what: str) -> None:
            self.observer.preparing(row, what)

        supply = RowSupply(engine=self.engine, matrix=self.matrix, relock=self.relock)
        seed = Seed(content=content, settings=settings)
        return supply.golden(row, seed, show, keep=self.keep)
