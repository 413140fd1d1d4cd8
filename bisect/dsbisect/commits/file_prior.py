"""How likely a commit is the culprit by the files it changes, before anything is measured. Pure.

Mild on purpose: a culprit in an unexpected place costs a run or two more, never a wrong answer
(docs/search.md has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from dsharness.errors import UsageError
from dsharness.products import SourceFacts

LEAST, MOST = 0.01, 100.0  # above this a wrong guess would cost more than a right one saves


def weight(files: Iterable[str], table: Mapping[str, float], other: float) -> float:
    """The weight of the most suspicious file; the first pattern that matches a file decides."""
    return max((_of(path, table, other) for path in files), default=other)


def prior_of(
    candidates: Mapping[str, Iterable[str]], source: SourceFacts, own: Mapping[str, float]
) -> dict[str, float]:
    """For each candidate, by the files that differ from the one before; ``own`` goes first."""
    known = source.hot_paths
    table = {**own, **{pattern: known[pattern] for pattern in known if pattern not in own}}
    return {name: weight(files, table, source.other_paths) for name, files in candidates.items()}


def prior_table(wanted: Iterable[str]) -> dict[str, float]:
    """The user's own patterns; UsageError says what is wrong."""
    own: dict[str, float] = {}
    for text in wanted:
        pattern, _, value = text.rpartition("=")
        try:
            own[pattern] = float(value)
        except ValueError:
            own[pattern] = math.nan
        if not pattern or not LEAST <= own[pattern] <= MOST:
            raise UsageError(
                f"--prior {text!r}: must be PATTERN=WEIGHT with a weight from {LEAST:g} to "
                f"{MOST:g}",
                hint="for example --prior 'src/core/*=5'",
            )
    return own


def _of(path: str, table: Mapping[str, float], other: float) -> float:
    return next((value for pattern, value in table.items() if fnmatchcase(path, pattern)), other)
