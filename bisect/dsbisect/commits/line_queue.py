"""Which lines to search, one after the other, until the first step, or each one, is explained.

No I/O.

[g, ., ., A, ., ., B, ., b]   one search names A; what is left of the difference names B
[P, s1, s2, M]                a merge that turned slow: its side branch is the next line
[good, base, bad]             branches that have parted: each side that holds a step is a line
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsharness.model import Boundary, Outcome, Verdict

SMALLEST_EFFECT = 1.10  # smaller differences are not followed further
LIKELY = 0.5  # the chance of a second step

Line = tuple[str, ...]
Search = Callable[[Line], Boundary]
Sides = Callable[[str], Sequence[Line]]  # the lines through a merge's side branches
# Is given each culprit, and the lines that are left, before the next one is searched.
Blamed = Callable[[Boundary, Sequence[Line]], None]


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """The answer for the whole range, and everything that was searched for its culprits."""

    whole: Boundary
    culprits: tuple[Boundary, ...] = ()  # one for each commit, or set of suspects, that is blamed
    boundaries: tuple[Boundary, ...] = ()
    left: tuple[Line, ...] = ()  # what was not searched, since the first culprit was enough
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Hunter:
    """Who searches a line, knows what a merge brought in, and is told of each culprit."""

    search: Search
    sides: Sides
    blamed: Blamed
    every: bool = False  # whether to go on when the first culprit is told


def hunt(line: Line, hunter: Hunter) -> Hunt:
    """Search the line, then what a merge brought in, then what a step leaves unexplained."""
    boundaries, culprits, left = _each((line,), hunter)
    return Hunt(whole=boundaries[0], culprits=culprits, boundaries=boundaries, left=left)


def hunt_parted(
    points: Line, lines: Sequence[Line], hunter: Hunter, tell: Callable[[str], None]
) -> Hunt:
    """Search [good, base, bad], then each line from base over which the cost changes: bad's first.

    ``tell`` is told on which side, before it is searched.
    """
    good, base, bad = points
    boundary = hunter.search(points)
    changed = changed_sides(boundary, lines)
    if len(changed) > 1 and base not in boundary.unmeasured:
        boundary = hunter.search((good, bad))  # both sides may have the same change
        if not boundary.found:
            note = (
                f"good and bad both differ from {base}, where they have parted: "
                f"`--good {base}` searches what changed on the way to bad"
            )
            return Hunt(whole=boundary, boundaries=(boundary,), notes=(note,))
    if not changed:
        return Hunt(whole=boundary, boundaries=(boundary,))
    note = _side(points, boundary, changed)
    tell(note)
    boundaries, culprits, left = _each(changed, hunter)
    if not any(answer.found for answer in boundaries):
        why = f"good and bad differ, but no step was found on either side: {boundary.summary}"
        undecided = {"found": False, "direction": "unknown", "summary": why}
        boundary = boundary.model_copy(update=undecided)
    unmeasured = {
        name: why for answer in (boundary, *boundaries) for name, why in answer.unmeasured.items()
    }
    return Hunt(
        whole=boundary.model_copy(update={"unmeasured": unmeasured}),
        culprits=culprits,
        boundaries=(boundary, *boundaries),
        left=left,
        notes=(note,),
    )


def changed_sides(boundary: Boundary, lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines over which the cost changes, by a search of [good, base, bad].

    A second step that is more likely than not counts, so that no side is called unchanged then.
    Both where it cannot be told on which side the step lies.
    """
    if not boundary.found:
        return ()
    if boundary.before is None or boundary.after is None:
        return tuple(lines)
    low, high = boundary.line.index(boundary.before), boundary.line.index(boundary.after)
    parts = [boundary.line[low : high + 1], *_unexplained(boundary)]
    likely = [name for name in boundary.also if boundary.chances.get(name, 0.0) >= LIKELY]
    parts += [boundary.line[place - 1 : place + 1] for place in map(boundary.line.index, likely)]
    return tuple(line for line in lines if any({line[0], line[-1]} <= set(part) for part in parts))


def _side(points: Line, boundary: Boundary, changed: Sequence[Line]) -> str:
    """A sentence that says on which side of where they have parted the cost changes."""
    good, base, bad = points
    if base in boundary.unmeasured:
        return f"{base}, where they have parted, cannot be measured: both sides are searched"
    if len(changed) > 1:
        return f"the cost changes on both sides of {base}: bad's is searched first"
    if changed[0][-1] == bad:
        return f"good is like {base}, where they have parted: the step lies on the way to bad {bad}"
    return (
        f"bad is like {base}, where they have parted: the step lies on the way to good {good}, "
        "and bad does not have it"
    )


def _each(
    lines: Sequence[Line], hunter: Hunter
) -> tuple[tuple[Boundary, ...], tuple[Boundary, ...], tuple[Line, ...]]:
    """The answers for lines and what follows, those that blame a commit, and what is left."""
    boundaries: list[Boundary] = []
    culprits: list[Boundary] = []
    queue = list(lines)
    while queue and (hunter.every or not culprits):
        boundary = hunter.search(queue.pop(0))
        boundaries.append(boundary)
        if not boundary.found or boundary.after is None:
            continue
        queue += _unexplained(boundary)
        queue += [part for part in _doubtful(boundary) if part not in queue]
        culprits.append(_innermost(boundary, hunter, boundaries))
        hunter.blamed(culprits[-1], tuple(queue))
    return tuple(boundaries), tuple(culprits), tuple(queue)


def _innermost(boundary: Boundary, hunter: Hunter, boundaries: list[Boundary]) -> Boundary:
    """Go inward through merges, as long as one side branch alone makes the step."""
    while boundary.after is not None and len(boundary.suspects) == 1:
        sides = hunter.sides(boundary.after)
        inside = _through(boundary.after, sides, hunter.search, boundaries)
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


def _sides(boundary: Boundary) -> tuple[Line, Line]:
    """The parts of a line before its step and after it."""
    line = boundary.line
    if boundary.before is None or boundary.after is None:
        return (), ()
    return line[: line.index(boundary.before) + 1], line[line.index(boundary.after) :]


def _unexplained(boundary: Boundary) -> list[Line]:
    """The parts of a line on both sides of the step over which the cost surely changes further."""
    verdicts = {verdict.candidate: verdict for verdict in boundary.verdicts}
    verdicts[boundary.line[0]] = Verdict(
        candidate=boundary.line[0],
        outcome=Outcome.INCONCLUSIVE,
        why="the line's first end",
        ratio_to_first=1.0,
        interval=(1.0, 1.0),
    )
    return [
        part
        for part in _sides(boundary)
        if len(part) > 1 and _apart(verdicts.get(part[0]), verdicts.get(part[-1]))
    ]


def _doubtful(boundary: Boundary) -> list[Line]:
    """The parts of a line on both sides of the step in which a second one is possible."""
    return [part for part in _sides(boundary) if {*part[1:]} & {*boundary.also}]


def _apart(begin: Verdict | None, end: Verdict | None) -> bool:
    """Whether two verdicts' intervals, seen from the line's first end, surely differ."""
    if begin is None or end is None or begin.interval is None or end.interval is None:
        return False
    return (
        end.interval[0] > begin.interval[1] * SMALLEST_EFFECT
        or end.interval[1] * SMALLEST_EFFECT < begin.interval[0]
    )
