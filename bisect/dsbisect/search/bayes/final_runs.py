"""Runs after the answer is certain, for its figures. Core pure logic."""

from __future__ import annotations

from dataclasses import dataclass

from dsbisect.search.bayes.belief import Beliefs, Certainty


@dataclass(frozen=True, kw_only=True)
class Last:
    """One more turn before the answer is given."""

    names: tuple[str, ...]
    why: str


def left_to_measure(beliefs: Beliefs, certainty: Certainty, survey_up_to: int) -> Last | None:
    """The neighbours of the named step, side by side; every candidate of a short line."""
    line = beliefs.line
    if beliefs.settled(certainty):
        low, high = beliefs.posterior.ends(beliefs.top)
        before, after = line.names[low], line.names[high]
        if min(_runs(beliefs, before), _runs(beliefs, after)) < certainty.least_runs:
            return Last(names=(before, after), why=f"confirm {before} against {after}")
    if len(line.names) > survey_up_to:
        return None
    first = line.names[beliefs.low]
    for name in line.names:
        if name not in beliefs.failed and _runs(beliefs, name) < certainty.least_runs:
            names = (name, first) if name != first else (name, line.names[beliefs.high])
            return Last(names=names, why=f"survey {name}: what does it cost?")
    return None


def _runs(beliefs: Beliefs, name: str) -> int:
    return sum(sample.valid for sample in beliefs.history.of(name))
