"""Gate 3: what users do with the patched server works."""

from __future__ import annotations

from dsbisect.validate.check import Gate
from dsbisect.validate.step import Run, Step, judged
from dsbisect.validate.works_gate import distribution_tests, recovery, replication, suites


def _step(name: str, seconds: float, title: str, run: Run) -> Step:
    """A patched server that stops answering is the change's fault, in each of them."""
    run = judged(Gate.WORKS, name, run)
    return Step(gate=Gate.WORKS, name=name, seconds=seconds, title=title, run=run)


STEPS: tuple[Step, ...] = (
    _step("binds", 45, "binding with every scheme, with and without TLS", suites.binds),
    _step("operations", 20, "searching and changing entries", suites.operations),
    _step("passwords", 30, "changing passwords under a policy", suites.passwords),
    _step("recovery", 45, "restarting the server, and killing it during writes", recovery.run),
    _step("replication", 60, "replicating between a patched and a stock server", replication.run),
    _step("distribution-tests", 30, "running the distribution's own tests", distribution_tests.run),
)
