"""Gate 1: it builds, twice the same; its findings and its interfaces, next to stock."""

from __future__ import annotations

from dsbisect.validate.builds_gate import abi, lint, made_packages, second_build
from dsbisect.validate.check import Gate
from dsbisect.validate.step import Step

STEPS: tuple[Step, ...] = (
    Step(
        gate=Gate.BUILDS, name="package", title="looking at the packages",
        seconds=10, run=made_packages.checks,
    ),
    Step(
        gate=Gate.BUILDS, name="lint", title="comparing what lintian or rpmlint finds",
        seconds=60, run=lint.checks,
    ),
    Step(
        gate=Gate.BUILDS, name="abi", title="comparing the libraries' interfaces",
        seconds=60, run=abi.checks,
    ),
    Step(
        gate=Gate.BUILDS, name="reproducible", title="building the packages a second time",
        seconds=420, run=second_build.checks, background=second_build.built_again,
    ),
)  # fmt: skip
