"""A step of a validation: runs something, and says in checks what it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.trial import Trial
from dsbuilds.failure_reason import UnbuildableError
from dsharness.content_key import content_key
from dsharness.errors import BuildError, CandidateError, EditError, InstanceError
from dsharness.model import Value
from dsharness.process.command import atomic_write, go_on, stop_all

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
    # What takes its time and hardly needs anyone: begun at once, and waited for by what is timed.
    background: Callable[[Trial], object] | None = None


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


class KeptStep(Value):
    """What one step found."""

    checks: tuple[Check, ...]


def step_key(step: Step, trial: Trial) -> str:
    """All that its checks follow from; of packages what they are, not what they were made from."""
    depends = [getattr(trial, name) for name in step.depends]
    asked = [step.gate, step.name, step.inputs, depends]
    stock = [trial.stock.key, dict(trial.stock.packages)]
    return content_key([code_key(), stock, trial.build.key, trial.package_hashes, *asked])


@cache
def code_key() -> str:
    """Of all that judges: what other code has found is looked for again."""
    files = sorted(each for each in Path(__file__).parent.rglob("*") if _judges(each))
    return content_key([file.read_text(encoding="utf-8") for file in files])


def _judges(file: Path) -> bool:
    return file.is_file() and not {"__pycache__", "templates"} & set(file.parts)


def recall(step: Step, trial: Trial) -> KeptStep | None:
    try:
        return KeptStep.model_validate_json(_place(step, trial).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(step: Step, trial: Trial, done: KeptStep) -> None:
    """Unless something is open: the next run tries that again."""
    if any(check.status is Status.INCONCLUSIVE for check in done.checks):
        return
    atomic_write(_place(step, trial), done.model_dump_json(indent=1) + "\n")


def _place(step: Step, trial: Trial) -> Path:
    return trial.folder / "steps" / f"{step_key(step, trial)}.json"


BUILD_S = 600.0  # from nothing, on two cores
PACKAGE = "package"


class StepListener(Protocol):
    """Receives what is done, and how long it may still take."""

    def began(self, title: str, left_s: float) -> None: ...

    def found(self, check: Check) -> None: ...

    def recalled(self, title: str) -> None: ...

    def skipped(self, gates: Sequence[Gate], why: str) -> None:
        """Nothing of these gates was run."""
        ...

    def known(self, checks: Sequence[Check], title: str) -> None:
        """All is known but what the last step, of that title, finds."""
        ...


def run_steps(trial: Trial, steps: Sequence[Step], listener: StepListener) -> tuple[Check, ...]:
    """Every check; where one stops the rest, the gates after it say that they were not run."""
    checks: list[Check] = []
    with _background(trial) as pool:
        for check in _run(trial, steps, listener, checks, pool):
            listener.found(check)
            checks.append(check)
    missing = _missing(checks)
    if missing:
        listener.skipped([check.gate for check in missing], missing[0].found)
    return (*checks, *missing)


@contextmanager
def _background(trial: Trial) -> Iterator[Executor]:
    """What is still built in it when there is an answer, or an error, is no longer needed."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="background") as pool:
        try:
            yield pool
        finally:
            pending = trial.background is not None and not trial.background.done()
            if pending:
                stop_all()
    if pending:
        go_on()


def _missing(checks: Sequence[Check]) -> tuple[Check, ...]:
    """A check for each gate that has none: why it was not run."""
    begun = {check.gate for check in checks}
    stopped = next((check for check in checks if check.stops), None)
    why = "it has no step for such packages"
    if stopped is not None:
        built = (stopped.gate, stopped.name) != (Gate.BUILDS, PACKAGE)
        why = f"{stopped.gate} {stopped.name} failed" if built else "the package did not build"
    return tuple(
        Check(gate=gate, name="gate", status=Status.NOT_RUN, found=why)
        for gate in Gate
        if gate not in begun
    )


def _run(
    trial: Trial,
    steps: Sequence[Step],
    listener: StepListener,
    checks: Sequence[Check],
    pool: Executor,
) -> Iterator[Check]:
    left = _TimeLeft([BUILD_S, *(step.seconds for step in steps)])
    listener.began("building the packages", left.seconds)
    try:
        trial.build  # noqa: B018 - made now: what is kept of the steps is named by it
    except (EditError, BuildError) as error:
        yield _of_error(Gate.BUILDS, PACKAGE, error)
        return
    left.done(BUILD_S)
    _begin_background(trial, steps, pool)
    for step in steps:
        kept = recall(step, trial)
        if kept is not None:
            left.skipped(step.seconds)
            listener.recalled(step.title)
        else:
            if step.background is not None and step is steps[-1]:
                listener.known(checks, step.title)
            listener.began(step.title, left.seconds)
            kept = _ran(step, trial)
            left.done(step.seconds)
        yield from kept.checks
        if any(check.stops for check in kept.checks):
            return


def _begin_background(trial: Trial, steps: Sequence[Step], pool: Executor) -> None:
    """Not what is known from before; its error comes again when its own step is run."""
    for step in steps:
        if step.background is not None and recall(step, trial) is None:
            trial.background = pool.submit(step.background, trial)


def _ran(step: Step, trial: Trial) -> KeptStep:
    if step.background is not None:
        trial.wait_until_alone()
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
        stops=gate is Gate.BUILDS and name == PACKAGE,
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
