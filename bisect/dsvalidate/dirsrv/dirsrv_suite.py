"""The suite of the directory server: what its steps are, and where each is found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from dsharness.model import Image, SystemName
from dsharness.systems.ldap.dirsrv import PREPARE
from dsvalidate.check import Check, Gate
from dsvalidate.dirsrv import (
    client_suites,
    password_strength,
    recovery,
    replication,
)
from dsvalidate.dirsrv.latency_step import single_client_step
from dsvalidate.dirsrv.populated_image import populated
from dsvalidate.dirsrv.upgrade import downgrade_checks, upgrade_checks, upgraded_image
from dsvalidate.dirsrv.validated_server import ValidatedServer, validated_server
from dsvalidate.performs_gate.paired_samples import SpeedQuestion
from dsvalidate.step import Step, server_step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Serve


class DirsrvSuite:
    """A ``Suite``: users of every scheme, a client of its own, two suppliers, secrets."""

    system: ClassVar[SystemName] = SystemName.DIRSRV
    prepare: ClassVar[str] = PREPARE

    @property
    def served(self) -> Serve[ValidatedServer]:
        return validated_server

    def filled(self, tools: StepTools, image: Image) -> str:
        return populated(tools, image).reference

    def upgraded(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
        return upgrade_checks(sides, tools, evidence)

    def upgraded_image(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> str | None:
        return upgraded_image(sides, tools, evidence)

    def downgraded(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder
    ) -> Sequence[Check]:
        return downgrade_checks(sides, tools, evidence)

    def works(self, sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Step, ...]:
        """List the suites of the LDAP client, and what else an administrator relies on."""
        given, step = (sides, tools, evidence), partial(server_step, Gate.WORKS)
        suite = partial(partial, client_suites.checks, *given)
        return (
            step("binds", 45, "binding with every scheme, with and without TLS", suite("binds")),
            step("operations", 20, "searching and changing entries", suite("operations")),
            step("passwords", 30, "changing passwords under a policy", suite("passwords")),
            step(
                "recovery", 45, "restarting the server, and killing it during writes",
                partial(recovery.run, *given),
            ),
            step(
                "replication", 60, "replicating between a patched and a stock server",
                partial(replication.run, *given),
            ),
        )  # fmt: skip

    def performs(self, question: SpeedQuestion, evidence: EvidenceFolder) -> tuple[Step, ...]:
        return (single_client_step(question, evidence),)

    def safe(
        self, sides: Sides, tools: StepTools, evidence: EvidenceFolder, *, accept_weaker: bool
    ) -> tuple[Step, ...]:
        """List what is compared of stored passwords, and what the servers left behind."""
        step = partial(server_step, Gate.SAFE)
        return (
            step(
                "password-strength", 30, "comparing how stock and patched servers store passwords",
                partial(
                    password_strength.strength_checks, sides, tools, accept_weaker=accept_weaker
                ),
                inputs=accept_weaker,
            ),
            step(
                "existing-passwords", 15,
                "looking at what becomes of passwords that are stored already",
                partial(password_strength.existing_checks, sides, tools),
            ),
            step(
                "traces", 90,
                "searching what the servers wrote and told for secrets, stock and patched",
                partial(client_suites.run, sides, tools, evidence),
            ),
        )  # fmt: skip
