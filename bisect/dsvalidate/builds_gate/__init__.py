"""Gate 1: it builds, twice the same; its findings and its interfaces, next to stock."""

from __future__ import annotations

from functools import partial

from dsvalidate.builds_gate import abi, lint, made_packages
from dsvalidate.check import Gate
from dsvalidate.step import Step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools


def steps(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Step, ...]:
    """What tools find in the packages, and whether a second build makes the same ones."""
    return (
        Step(
            gate=Gate.BUILDS,
            name="package",
            seconds=10,
            title="looking at the packages",
            run=partial(made_packages.package_checks, sides, tools),
        ),
        Step(
            gate=Gate.BUILDS,
            name="lint",
            seconds=60,
            title="comparing what lintian or rpmlint finds",
            run=partial(lint.checks, sides, tools, evidence),
        ),
        Step(
            gate=Gate.BUILDS,
            name="abi",
            seconds=60,
            title="comparing the libraries' interfaces",
            run=partial(abi.checks, sides, tools, evidence),
        ),
        Step(
            gate=Gate.BUILDS,
            name="reproducible",
            seconds=420,
            title="building the packages a second time",
            run=partial(made_packages.reproducible_checks, sides, tools, evidence),
            background=partial(made_packages.built_again, sides, tools),
        ),
    )
