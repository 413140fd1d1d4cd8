"""What is measured when the answer is certain already: for the figures. Core pure logic."""

from __future__ import annotations

from dataclasses import dataclass

from dsbisect.statistical.believing import Beliefs

RUNS = 2  # of each candidate of a line that is surveyed


@dataclass(frozen=True, kw_only=True)
class Last:
    """One more turn before the answer is given."""

    names: tuple[str, ...]
    why: str


def left_to_measure(beliefs: Beliefs, survey_up_to: int) -> Last | None:
    """All of a line that is short, beside its first end."""
    line = beliefs.line
    if len(line.names) > survey_up_to:
        return None
    first = line.names[beliefs.low]
    for name in line.names:
        if name not in beliefs.failed and _runs(beliefs, name) < RUNS:
            names = (name, first) if name != first else (name,)
            return Last(names=names, why=f"survey {name}: what does it cost?")
    return None


def _runs(beliefs: Beliefs, name: str) -> int:
    return sum(sample.valid for sample in beliefs.history.of(name))
