"""Gate 3: what users do with the patched server works."""

from __future__ import annotations

from functools import partial

from dsvalidate.check import Gate
from dsvalidate.step import Step, server_step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Suite
from dsvalidate.works_gate import distribution_tests


def steps(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite
) -> tuple[Step, ...]:
    """List what the product's suite tries, and the distribution's own tests."""
    return (
        *suite.works(sides, tools, evidence),
        server_step(
            Gate.WORKS, "distribution-tests", 30, "running the distribution's own tests",
            partial(distribution_tests.run, sides, tools, evidence, suite),
        ),
    )  # fmt: skip
