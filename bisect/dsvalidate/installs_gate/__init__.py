"""Gate 2: the package manager puts the patched packages over stock ones, and back."""

from __future__ import annotations

from functools import partial

from dsvalidate.check import Gate
from dsvalidate.installs_gate.package_change import removal_checks
from dsvalidate.step import Step
from dsvalidate.step_code import INSTALLED
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Suite


def steps(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite
) -> tuple[Step, ...]:
    """List the way there, back and out; the later ones begin where the upgrade has ended."""
    return (
        Step(
            gate=Gate.INSTALLS, name="upgrade", seconds=75, procedures=INSTALLED,
            title="upgrading a filled stock server to the patched packages",
            run=partial(suite.upgraded, sides, tools, evidence),
        ),
        Step(
            gate=Gate.INSTALLS, name="downgrade", seconds=45, procedures=INSTALLED,
            title="downgrading to the stock packages again",
            run=partial(suite.downgraded, sides, tools, evidence),
        ),
        Step(
            gate=Gate.INSTALLS, name="removal", seconds=45, procedures=INSTALLED,
            title="removing the packages, stock and patched",
            run=partial(removal_checks, sides, tools, evidence, suite),
        ),
    )  # fmt: skip
