"""Gate 3: what users do with the patched server works."""

from __future__ import annotations

from dsbisect.validate.check import Gate
from dsbisect.validate.server_fault import judged
from dsbisect.validate.step import Step
from dsbisect.validate.works_gate import distribution_tests, recovery, replication, suites

STEPS: tuple[Step, ...] = (
    Step(
        gate=Gate.WORKS, name="binds", seconds=45,
        run=judged(Gate.WORKS, "binds", suites.binds),
        title="binding with every scheme, with and without TLS",
    ),
    Step(
        gate=Gate.WORKS, name="operations", seconds=20,
        run=judged(Gate.WORKS, "operations", suites.operations),
        title="searching and changing entries",
    ),
    Step(
        gate=Gate.WORKS, name="passwords", seconds=30,
        run=judged(Gate.WORKS, "passwords", suites.passwords),
        title="changing passwords under a policy",
    ),
    Step(
        gate=Gate.WORKS, name="recovery", seconds=45,
        run=judged(Gate.WORKS, "recovery", recovery.run),
        title="restarting the server, and killing it during writes",
    ),
    Step(
        gate=Gate.WORKS, name="replication", seconds=60,
        run=judged(Gate.WORKS, "replication", replication.run),
        title="replicating between a patched and a stock server",
    ),
    Step(
        gate=Gate.WORKS, name="distribution-tests", seconds=30,
        run=judged(Gate.WORKS, "distribution-tests", distribution_tests.run),
        title="running the distribution's own tests",
    ),
)  # fmt: skip
