"""A patched server that fails in the middle of a step: a failed check, not a fault of the lab."""

from __future__ import annotations

from collections.abc import Sequence

from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.step import Run
from dsbisect.validate.trial import Trial
from dsharness.errors import InstanceError

ADVICE = (
    "Stock's server did the same before. The log of this step has the commands and the server's "
    "last words."
)


def judged(gate: Gate, name: str, run: Run) -> Run:
    """The step's work; an error of the server ends it as a failed check of that name."""

    def judge(trial: Trial) -> Sequence[Check]:
        try:
            return run(trial)
        except InstanceError as error:
            if error.killed:  # from outside: that says nothing of the packages
                raise
            return [fault_check(gate, name, error)]

    return judge


def fault_check(gate: Gate, name: str, error: InstanceError) -> Check:
    first, *rest = error.message.splitlines() or ["it failed without a word"]
    log = [f"log: {error.log}"] if error.log else []
    return Check(
        gate=gate, name=name, status=Status.FAILED, found=f"the patched server failed: {first}",
        advice=ADVICE, details=(*rest[:12], *log),
    )  # fmt: skip
