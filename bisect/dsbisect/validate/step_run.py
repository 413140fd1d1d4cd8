"""All steps in their order: kept ones are recalled, the others run, and errors become checks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.kept_steps import KeptStep, keep, recall
from dsbisect.validate.step import Step
from dsbisect.validate.trial import Trial
from dsbuilds.failure_reason import UnbuildableError
from dsharness.errors import BuildError, CandidateError, EditError

BUILD_S = 600.0  # from nothing, on two cores


class StepListener(Protocol):
    """Receives what is done, and how long it may still take."""

    def began(self, title: str, left_s: float) -> None: ...

    def found(self, check: Check) -> None: ...

    def recalled(self, title: str) -> None: ...


def run_steps(trial: Trial, steps: Sequence[Step], listener: StepListener) -> tuple[Check, ...]:
    """Every check; where one stops the rest, the gates after it say that they were not run."""
    checks: list[Check] = []
    for check in _run(trial, steps, listener):
        listener.found(check)
        checks.append(check)
    for check in _missing(checks):
        listener.found(check)
        checks.append(check)
    return tuple(checks)


def _missing(checks: Sequence[Check]) -> tuple[Check, ...]:
    """A check for each gate that has none: why it was not run."""
    begun = {check.gate for check in checks}
    stopped = next((check for check in checks if check.stops), None)
    why = f"not run: {stopped.found}" if stopped else "it has no step for such packages"
    return tuple(
        Check(gate=gate, name="gate", status=Status.NOT_RUN, found=why)
        for gate in Gate
        if gate not in begun
    )


def _run(trial: Trial, steps: Sequence[Step], listener: StepListener) -> Iterator[Check]:
    left = _TimeLeft([BUILD_S, *(step.seconds for step in steps)])
    listener.began("building the packages", left.seconds)
    try:
        trial.build  # noqa: B018 - made now: what is kept of the steps is named by it
    except (EditError, BuildError) as error:
        yield _of_error(Gate.BUILDS, "package", error)
        return
    left.done(BUILD_S)
    for step in steps:
        kept = recall(step, trial)
        if kept is not None:
            left.skipped(step.seconds)
            listener.recalled(step.title)
        else:
            listener.began(step.title, left.seconds)
            kept = _ran(step, trial)
            left.done(step.seconds)
        yield from kept.checks
        if any(check.stops for check in kept.checks):
            return


def _ran(step: Step, trial: Trial) -> KeptStep:
    try:
        checks = tuple(step.run(trial))
    except CandidateError as error:
        checks = (_of_error(step.gate, step.name, error),)
    done = KeptStep(checks=checks)
    keep(step, trial, done)
    return done


def _of_error(gate: Gate, name: str, error: CandidateError) -> Check:
    """What was wrong with the change itself fails; what may have been the lab leaves it open."""
    passing = isinstance(error, UnbuildableError) and not error.lasting
    fault = isinstance(error, EditError | BuildError) and not passing
    return Check(
        gate=gate,
        name=name,
        status=Status.FAILED if fault else Status.INCONCLUSIVE,
        found=error.message.splitlines()[0],
        advice=_advice(error),
        details=tuple(error.message.splitlines()[1:]),
        evidence=(str(error.log),) if error.log else (),
        stops=gate is Gate.BUILDS and name == "package",
    )


def _advice(error: CandidateError) -> str:
    if isinstance(error, UnbuildableError) and error.lasting:
        return "correct what the build says; the log has all of it"
    return error.hint or "read the log, then give the same command again"


class _TimeLeft:
    """From what was expected of the steps, and how long those took that have run."""

    def __init__(self, expected: Sequence[float]) -> None:
        self._left = sum(expected)
        self._expected = 0.0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        took = time.monotonic() - self._began
        slower = min(4.0, max(0.25, took / self._expected)) if self._expected else 1.0
        return self._left * slower

    def done(self, expected: float) -> None:
        self._expected += expected
        self._left -= expected

    def skipped(self, expected: float) -> None:
        self._left -= expected
