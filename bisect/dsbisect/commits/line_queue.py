"""Which lines to search one after the other until every step is explained. Core pure logic.

[g, ., ., A, ., ., B, ., b]   one search names A; what is left of the difference names B
[P, s1, s2, M]                a merge that turned slow: its side branch is the next line
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsharness.model import Boundary, Outcome, Verdict

SMALLEST_EFFECT = 1.10  # smaller differences are not followed further

Line = tuple[str, ...]
Search = Callable[[Line], Boundary]
Sides = Callable[[str], Sequence[Line]]  # the lines through a merge's side branches


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """Everything that was searched; the first boundary is that of the whole range."""

    boundaries: tuple[Boundary, ...]
    culprits: tuple[Boundary, ...]  # one for each commit, or set of suspects, that is blamed

    @property
    def whole(self) -> Boundary:
        return self.boundaries[0]


def hunt(line: Line, search: Search, sides: Sides) -> Hunt:
    """Search the line, then what a step leaves unexplained, then what a merge brought in."""
    boundaries: list[Boundary] = []
    culprits: list[Boundary] = []
    lines = [line]
    while lines:
        boundary = search(lines.pop(0))
        boundaries.append(boundary)
        if not boundary.found or boundary.after is None:
            continue
        culprits.append(_innermost(boundary, search, sides, boundaries))
        lines += _unexplained(boundary)
    return Hunt(boundaries=tuple(boundaries), culprits=tuple(culprits))


def _innermost(
    boundary: Boundary, search: Search, sides: Sides, boundaries: list[Boundary]
) -> Boundary:
    """Go inward through merges, as long as one side branch alone makes the step."""
    while boundary.after is not None and len(boundary.suspects) == 1:
        inside = _through(boundary.after, sides(boundary.after), search, boundaries)
        if inside is None:
            break
        boundary = inside
    return boundary


def _through(
    merge: str, inside: Sequence[Line], search: Search, boundaries: list[Boundary]
) -> Boundary | None:
    """The step inside a merge's side branches; None when it is the merge itself."""
    for line in inside:
        boundary = search(line)
        boundaries.append(boundary)
        # A commit that makes the same server as the merge takes its place at the line's end.
        if boundary.found and boundary.after not in {None, merge}:
            return boundary
    return None


def _unexplained(boundary: Boundary) -> list[Line]:
    """The parts of a line on both sides of the step over which the cost still changes."""
    line = boundary.line
    if boundary.before is None or boundary.after is None:
        return []
    known = {verdict.candidate: verdict for verdict in boundary.verdicts}
    low, high = line.index(boundary.before), line.index(boundary.after)
    first = Verdict(
        candidate=line[0], outcome=Outcome.INCONCLUSIVE, why="the line's first end",
        ratio_to_first=1.0, interval=(1.0, 1.0),
    )  # fmt: skip
    ends = (
        (line[: low + 1], first, known.get(line[low])),
        (line[high:], known.get(line[high]), known.get(line[-1])),
    )
    return [
        part for part, begin, end in ends if len(part) > 1 and begin and end and _apart(begin, end)
    ]


def _apart(begin: Verdict, end: Verdict) -> bool:
    """Whether two verdicts' intervals, seen from the line's first end, surely differ."""
    if begin.interval is None or end.interval is None:
        return False
    return (
        end.interval[0] > begin.interval[1] * SMALLEST_EFFECT
        or end.interval[1] * SMALLEST_EFFECT < begin.interval[0]
    )
