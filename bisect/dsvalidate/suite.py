"""What a validation has to know of one product's server; all else in a gate is the same for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from dsharness.model import Image, SystemName
from dsvalidate.check import Check
from dsvalidate.performs_gate.paired_samples import SpeedQuestion
from dsvalidate.service import Serve, Service
from dsvalidate.sides import Sides
from dsvalidate.step import Step
from dsvalidate.step_tools import EvidenceFolder, StepTools


class Suite(Protocol):
    """The server of a product's packages, and what it must do."""

    system: ClassVar[SystemName]  # that serves the rows whose packages it can take
    prepare: ClassVar[str]  # a script: what the server's own unit would do before its start

    @property
    def served(self) -> Serve[Service]:
        """Run a container of an image, in which an instance is, or will be made."""
        ...

    def filled(self, tools: StepTools, image: Image) -> str:
        """Return the image with a filled instance, stopped: found, or made now."""
        ...

    def upgraded(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
        """Upgrade a filled stock server, and use it; the image that is left is kept."""
        ...

    def upgraded_image(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> str | None:
        """Return what the upgrade left, made again if it is gone; None where it left nothing."""
        ...

    def downgraded(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> Sequence[Check]:
        """Go back to stock, and say what no longer works; nothing here fails a validation."""
        ...

    def works(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Step, ...]:
        """List what users do with the server."""
        ...

    def performs(self, question: SpeedQuestion, evidence: EvidenceFolder) -> tuple[Step, ...]:
        """List what is measured of it but the workloads."""
        ...

    def safe(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder, *, accept_weaker: bool
    ) -> tuple[Step, ...]:
        """List what is compared of its security but the inventory of its system."""
        ...
