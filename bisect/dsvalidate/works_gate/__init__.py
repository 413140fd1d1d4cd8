"""Gate 3: what users do with the patched server works."""

from __future__ import annotations

from functools import partial

from dsvalidate.check import Gate
from dsvalidate.dirsrv import recovery, replication, suites
from dsvalidate.sides import Sides
from dsvalidate.step import Step, StepRun, judged
from dsvalidate.step_code import SERVED
from dsvalidate.step_tools import EvidenceFolder, StepTools
from dsvalidate.works_gate import distribution_tests


def _step(name: str, seconds: float, title: str, run: StepRun) -> Step:
    """A patched server that stops answering is the change's fault, in each of them."""
    run = judged(Gate.WORKS, name, run)
    return Step(
        gate=Gate.WORKS, name=name, seconds=seconds, title=title, run=run, procedures=SERVED
    )


def steps(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Step, ...]:
    """The suites of the LDAP client, and what else an administrator relies on."""
    given = (sides, tools, evidence)
    suite = partial(partial, suites.checks, *given)
    return (
        _step("binds", 45, "binding with every scheme, with and without TLS", suite("binds")),
        _step("operations", 20, "searching and changing entries", suite("operations")),
        _step("passwords", 30, "changing passwords under a policy", suite("passwords")),
        _step(
            "recovery", 45, "restarting the server, and killing it during writes",
            partial(recovery.run, *given),
        ),
        _step(
            "replication", 60, "replicating between a patched and a stock server",
            partial(replication.run, *given),
        ),
        _step(
            "distribution-tests", 30, "running the distribution's own tests",
            partial(distribution_tests.run, *given),
        ),
    )  # fmt: skip
