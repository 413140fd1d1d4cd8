"""A step of a validation: runs something, and says in checks what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsbisect.validate.check import Check, Gate
from dsbisect.validate.trial import Trial

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
