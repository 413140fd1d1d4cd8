"""A step of a validation: runs something, and says in checks what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.trial import Trial
from dsharness.errors import InstanceError

Run = Callable[[Trial], Sequence[Check]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Its checks are kept: a validation that was stopped goes on with the step after it.

    ``run`` may raise what the lab raises. A change that does not apply, build or start is the
    change's fault and a failed check; anything else is not, and leaves the question open.
    """

    gate: Gate
    name: str
    title: str  # progress: "building it a second time"
    depends: tuple[str, ...] = ()  # on these of the trial, and on its packages
    inputs: object = None  # and on this, as JSON
    seconds: float  # about, on two cores and from nothing: for the first ETA
    run: Run
    # What takes its time and hardly needs anyone: done before, while cores are idle.
    ahead: Callable[[Trial], object] | None = None


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
