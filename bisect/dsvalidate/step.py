"""A step of a validation: runs something, and says in checks what it found.

When the code that it finds things by changes, what it found no longer counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from dsbuilds.failure_reason import UnbuildableError
from dsharness.content_key import content_key
from dsharness.errors import (
    BuildError,
    CandidateError,
    EditError,
    InconclusiveError,
    InstanceError,
)
from dsharness.model import Value
from dsharness.process.command import atomic_write, go_on, stop_all
from dsvalidate.check import Check, Gate, Status

Procedures = tuple[str, ...]  # modules and packages outside this one, by name
# How a server is made, filled and asked; what changes the packages of a running system; and how
# samples are taken, judged and compared. Engines and builds are left out: both sides get the same
# engine, and a build is named by what it is.
SERVED: Procedures = ("dsharness.systems",)
INSTALLED: Procedures = (*SERVED, "dsbuilds.libexec")
MEASURED: Procedures = (
    *SERVED,
    "dsharness.loads",
    "dsharness.machine",
    "dsharness.measure",
    "dslab",
    "dsresults.compare",
    "dssearch",
    "dsbisect.compare_study",
    "dsbisect.leak_step",
    "dsbisect.open_campaigns",
    "dsbisect.speed_gate",
)
OWN = "dsvalidate"
# What only writes an answer down finds nothing.
WRITERS = {"attestation.py", "answer_files.py"}
IGNORED = {"__pycache__", "templates"}


@cache
def code_key(procedures: Procedures = (), root: Path | None = None) -> str:
    """Hash all of this package that judges, and the procedures; ``root`` holds every package."""
    names = (OWN, *sorted(procedures))
    return content_key(
        [[file.read_text(encoding="utf-8") for file in _files(n, root)] for n in names]
    )


def _files(name: str, root: Path | None) -> Iterator[Path]:
    place = (root or _root(name.partition(".")[0])) / name.replace(".", "/")
    module = place.with_suffix(".py")
    files = [module] if module.is_file() else sorted(place.rglob("*"))
    if not files:
        raise FileNotFoundError(f"{name}: no such procedure")
    yield from (file for file in files if file.is_file() and _counts(file))


def _counts(file: Path) -> bool:
    own = file.parent.name == OWN and file.name in WRITERS
    return not own and not IGNORED & set(file.parts)


def _root(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{package}: no such package")
    return Path(spec.origin).parents[1]


StepRun = Callable[[], Sequence[Check]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Its checks are kept: a validation that was stopped goes on with the step after it.

    ``run`` may raise what the lab raises. A change that does not apply, build or start is the
    change's fault and a failed check; anything else is not, and leaves the question open.
    """

    gate: Gate
    name: str
    title: str  # progress: "building it a second time"
    inputs: object = None  # what else its checks follow from than both sides, as JSON
    procedures: Procedures = ()  # and code outside this package
    seconds: float  # about, on two cores and from nothing: for the first ETA
    run: StepRun
    # What takes its time and hardly needs anyone: begun at once, and waited for by what is timed.
    background: Callable[[], object] | None = None


class Background:
    """Work that goes on next to steps, until one of them wants the machine for itself."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="background")
        self._work: Future[object] | None = None

    def begin(self, work: Callable[[], object]) -> None:
        self._work = self._pool.submit(work)

    def wait(self) -> None:
        """Return when it is done: nothing is built while something is timed."""
        if self._pending:
            self._progress("waiting for the second build: it would disturb what is timed")
            wait([work for work in (self._work,) if work is not None])

    @property
    def _pending(self) -> bool:
        return self._work is not None and not self._work.done()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Stop the work that still runs: there is an answer or an error, and it is not needed."""
        pending = self._pending
        if pending:
            stop_all()
        self._pool.shutdown()
        if pending and error is None:
            go_on()


ADVICE = (
    "Stock's server did the same before. The log of this step has the commands and the server's "
    "last words."
)


def judged(gate: Gate, name: str, run: StepRun) -> StepRun:
    """Wrap a step's work: an error of the server ends it as a failed check of that name."""

    def judge() -> Sequence[Check]:
        try:
            return run()
        except InstanceError as error:
            if error.killed:  # from outside: that says nothing of the packages
                raise
            return [fault_check(gate, name, error)]

    return judge


def server_step(
    gate: Gate, name: str, seconds: float, title: str, run: StepRun, inputs: object = None
) -> Step:
    """Make a step with a server: a patched one that stops answering is the change's fault."""
    return Step(
        gate=gate,
        name=name,
        seconds=seconds,
        title=title,
        run=judged(gate, name, run),
        inputs=inputs,
        procedures=SERVED,
    )


def fault_check(gate: Gate, name: str, error: InstanceError) -> Check:
    first, *rest = error.message.splitlines() or ["it failed without a word"]
    log = [f"log: {error.log}"] if error.log else []
    return gate.check(
        name,
        Status.FAILED,
        f"the patched server failed: {first}",
        advice=ADVICE,
        details=(*rest[:12], *log),
    )


class KeptStep(Value):
    """The checks of one step, as they are kept."""

    checks: tuple[Check, ...]


@dataclass(frozen=True, kw_only=True)
class KeptSteps:
    """The folder of what steps found in both sides, of packages as they are."""

    folder: Path
    sides: object  # what tells both apart from all others, as JSON

    def recall(self, step: Step) -> KeptStep | None:
        try:
            return KeptStep.model_validate_json(self._place(step).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, step: Step, kept_step: KeptStep) -> None:
        """Keep what was found, unless something is open: the next run tries that again."""
        if any(check.status is Status.INCONCLUSIVE for check in kept_step.checks):
            return
        atomic_write(self._place(step), kept_step.model_dump_json(indent=1) + "\n")

    def _place(self, step: Step) -> Path:
        facts = [step.gate, step.name, step.inputs]
        return self.folder / f"{content_key([code_key(step.procedures), self.sides, *facts])}.json"


BUILD_S = 600.0  # from nothing, on two cores
PACKAGE = "package"


class StepListener(Protocol):
    """Receives what is done, and how long it may still take."""

    def began(self, title: str, left_s: float) -> None: ...

    def found(self, check: Check) -> None: ...

    def recalled(self, title: str) -> None: ...

    def skipped(self, gates: Sequence[Gate], why: str) -> None:
        """Receive the gates of which nothing was run, and why."""
        ...

    def known(self, checks: Sequence[Check], title: str) -> None:
        """Receive the checks when only the last step, of that title, is left."""
        ...


Prepare = Callable[[], tuple[Sequence[Step], KeptSteps]]


def run_steps(
    prepare: Prepare,
    expected_s: float,
    background: Background,
    listener: StepListener,
    *,
    no_step: str = "it has no step for such packages",
) -> tuple[Check, ...]:
    """Return every check; where one stops the rest, the gates after it say that they were not run.

    ``prepare`` builds the packages; only then it is known what the steps are about. ``no_step``
    says why a gate may have none.
    """
    checks: list[Check] = []
    with background:
        for check in _run(prepare, expected_s, background, listener, checks):
            listener.found(check)
            checks.append(check)
    missing = _missing(checks, no_step)
    if missing:
        listener.skipped([check.gate for check in missing], missing[0].found)
    return (*checks, *missing)


def _missing(checks: Sequence[Check], why: str) -> tuple[Check, ...]:
    """Say of each gate that has no check why it was not run."""
    gates_begun = {check.gate for check in checks}
    stopped = next((check for check in checks if check.stops), None)
    if stopped is not None:
        built = (stopped.gate, stopped.name) != (Gate.BUILDS, PACKAGE)
        why = f"{stopped.gate} {stopped.name} failed" if built else "the package did not build"
    return tuple(
        gate.check("gate", Status.NOT_RUN, why) for gate in Gate if gate not in gates_begun
    )


def _run(
    prepare: Prepare,
    expected_s: float,
    background: Background,
    listener: StepListener,
    checks: Sequence[Check],
) -> Iterator[Check]:
    time_left = _TimeLeft(BUILD_S + expected_s)
    listener.began("building the packages", time_left.seconds)
    try:
        steps, keeper = prepare()
    except (EditError, BuildError) as error:
        yield _of_error(Gate.BUILDS, PACKAGE, error)
        return
    time_left.done(BUILD_S)
    for step in steps:  # not what is known from before; an error comes again with its own step
        if step.background is not None and keeper.recall(step) is None:
            background.begin(step.background)
    for step in steps:
        kept_step = keeper.recall(step)
        if kept_step is not None:
            time_left.skipped(step.seconds)
            listener.recalled(step.title)
        else:
            if step.background is not None:
                if step is steps[-1]:
                    listener.known(checks, step.title)
                background.wait()
            listener.began(step.title, time_left.seconds)
            kept_step = _ran(step)
            keeper.keep(step, kept_step)
            time_left.done(step.seconds)
        yield from kept_step.checks
        if any(check.stops for check in kept_step.checks):
            return


def _ran(step: Step) -> KeptStep:
    try:
        return KeptStep(checks=tuple(step.run()))
    except (CandidateError, InconclusiveError) as error:
        return KeptStep(checks=(_of_error(step.gate, step.name, error),))


def _of_error(gate: Gate, name: str, error: CandidateError | InconclusiveError) -> Check:
    """Fail for what was wrong with the change; what may have been the lab leaves it open."""
    passing = isinstance(error, UnbuildableError) and not error.lasting
    fault = isinstance(error, EditError | BuildError) and not passing
    return gate.check(
        name,
        Status.FAILED if fault else Status.INCONCLUSIVE,
        error.message.splitlines()[0],
        advice=_advice(error),
        details=tuple(error.message.splitlines()[1:]),
        evidence=(str(error.log),) if error.log else (),
        stops=gate is Gate.BUILDS and name == PACKAGE,
    )


def _advice(error: CandidateError | InconclusiveError) -> str:
    if isinstance(error, UnbuildableError) and error.lasting:
        return "correct what the build says; the log has all of it"
    return error.hint or "read the log, then give the same command again"


class _TimeLeft:
    """Estimates the time left: what was expected of the steps, corrected by those that ran."""

    def __init__(self, expected_s: float) -> None:
        self._left = expected_s
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
