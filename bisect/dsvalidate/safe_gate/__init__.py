"""Gate 5: what the patch does to security: of the server's secrets, and of the system around it."""

from __future__ import annotations

from functools import partial

from dsvalidate.check import Gate
from dsvalidate.safe_gate import new_inventory
from dsvalidate.step import Step, server_step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Suite


def steps(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite, *, accept_weaker: bool
) -> tuple[Step, ...]:
    """List what the product's suite compares, and what is newly exposed."""
    return (
        *suite.safe(sides, tools, evidence, accept_weaker=accept_weaker),
        server_step(
            Gate.SAFE, "inventory", 30,
            "listing ports, privileged files and libraries, stock and patched",
            partial(new_inventory.run, sides, tools, evidence, suite),
        ),
    )  # fmt: skip
