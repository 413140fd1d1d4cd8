"""A step of a validation: runs something, and says in checks what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsbisect.validate.check import Check, Gate
from dsbisect.validate.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Step:
    """Its checks are kept; a validation that was stopped begins with the step after.

    ``run`` raises what the lab raises: a CandidateError is a failed check, an infrastructure error
    ends the validation (it continues once that is fixed).
    """

    gate: Gate
    name: str
    title: str  # progress: "building it a second time"
    revision: int = 1  # raised when the same packages would be judged differently
    seconds: float  # about, on two cores: for the ETA before anything is known
    run: Callable[[Trial], Sequence[Check]]
