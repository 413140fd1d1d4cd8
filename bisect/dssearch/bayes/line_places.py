"""Where a line is searched: its ends, or what is nearest to them. Core pure logic, no I/O.

[-, -, ?, -, ?, ?, ?, ok, …]   the first places tried from an end that fails are 0, 1, 3, 7 …
[-, -, ?, -, ?, -, ok, ok, …]  then what lies between the last failure and the first success

Then the places within a gap. What cannot be measured comes in stretches there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dssearch.bayes.track import Floats, Ints, Track


def ends(
    names: Sequence[str], failed: Collection[str], successes: Collection[str]
) -> tuple[int, int] | None:
    """Return the ends, or what to try in their place; None when fewer than two are left.

    Unmeasurable candidates come in stretches; passing one costs the logarithm of its length.
    """
    fails, works = failed.__contains__, successes.__contains__
    last = len(names) - 1
    if last > 0 and not fails(names[0]) and not fails(names[last]):
        return 0, last
    low = _nearest(names, fails, works)
    high = last - _nearest(names[::-1], fails, works)
    return (low, high) if low < high else _walked(names, fails)


def _nearest(
    names: Sequence[str], fails: Callable[[str], bool], works: Callable[[str], bool]
) -> int:
    """Return the place nearest to the start that can be measured, or the one to try next."""
    failed, place = -1, 0
    for place in _leaps(len(names)):
        if not fails(names[place]):
            break
        failed = place
    while place - failed > 1 and failed >= 0 and works(names[place]):
        middle = (failed + place) // 2
        if fails(names[middle]):
            failed = middle
        else:
            place = middle
    return place


def _leaps(length: int) -> Iterator[int]:
    place = 0
    while place < length - 1:
        yield place
        place = 2 * place + 1
    yield length - 1


def _walked(names: Sequence[str], fails: Callable[[str], bool]) -> tuple[int, int] | None:
    """Return the outermost two that did not fail."""
    places = [place for place, name in enumerate(names) if not fails(name)]
    return (places[0], places[-1]) if len(places) > 1 else None


def moved(names: Sequence[str], bounds: tuple[int, int]) -> str:
    """Return the note when an end is replaced; empty while both are the ones asked for."""
    reasons = []
    for end, place in ((0, bounds[0]), (len(names) - 1, bounds[1])):
        left_out = abs(place - end)
        if left_out:
            noun = "candidate" if left_out == 1 else "candidates"
            reasons.append(
                f"the end {names[end]} cannot be measured: trying {names[place]}, "
                f"{left_out} {noun} further in"
            )
    return "; ".join(reasons)


MOST_FAILED = 16  # in one gap: its candidates stay suspects, and no further one is built


@dataclass(frozen=True, kw_only=True)
class Split:
    """Measure ``position``; the step is after it with all but ``share`` of the gap's mass."""

    gap: int
    position: int
    share: float
    buildable: float  # the chance that it can be measured at all
    news: float = 1.0  # the part of what it tells that is not told by what is under way


def split_between(
    line: Track, gap: int, ends: tuple[int, int], failed: Sequence[int], under_way: Sequence[int]
) -> Split | None:
    """Return the same where some places in the gap are under way: one between them that adds most.

    low ---- a ---- high: a is under way, so the next one halves either side of it.
    """
    inside = sorted({place for place in under_way if ends[0] < place < ends[1]})
    if not inside:
        return split(line, gap, ends, failed)
    total, best, most = line.mass(*ends), None, 0.0
    for low, high in pairwise((ends[0], *inside, ends[1])):
        part = split(line, gap, (low, high), [place for place in failed if low < place < high])
        share = line.mass(ends[0], part.position) / total if part else 0.0
        if part is None or not 0 < share < 1:
            continue
        adds = line.mass(low, high) / total * float(_bits(np.array(part.share)))
        if adds * part.buildable > most:
            most = adds * part.buildable
            best = replace(part, share=share, news=adds / float(_bits(np.array(share))))
    return best


def split(line: Track, gap: int, ends: tuple[int, int], failed: Sequence[int]) -> Split | None:
    """Return the middle of the mass; None when nothing that could be measured is left inside.

    What cannot be measured comes in stretches, of a length that grows with what was seen of them:
    so after a failure the next try is as far away as the stretch may reach.
    """
    low, high = ends
    total = line.mass(low, high)
    if high - low < 2 or total <= 0 or len(failed) >= MOST_FAILED:
        return None
    if not failed:
        middle = _middle(line, low, high)
        return Split(gap=gap, position=middle, share=line.mass(low, middle) / total, buildable=1.0)
    inner = np.arange(low + 1, high)
    buildable = _buildable(inner, np.asarray(sorted(failed)))
    share = (line.sums[inner] - line.sums[low]) / total
    worth = buildable * _bits(share)
    best = int(np.argmax(worth))
    if worth[best] <= 0:
        return None
    return Split(
        gap=gap,
        position=int(inner[best]),
        share=float(share[best]),
        buildable=float(buildable[best]),
    )


def _middle(line: Track, low: int, high: int) -> int:
    """Return the earlier one of two that halve the mass equally well."""
    half = (line.sums[low] + line.sums[high]) / 2
    middle = int(np.clip(np.searchsorted(line.sums, half), low + 1, high - 1))
    before = max(low + 1, middle - 1)
    return before if abs(line.sums[before] - half) <= abs(line.sums[middle] - half) else middle


def _buildable(inner: Ints, failed: Ints) -> Floats:
    """Return 0 for what failed, and little near it: the less, the longer its stretch is."""
    after = np.searchsorted(failed, inner)
    distance = inner - failed[np.maximum(after - 1, 0)]
    right = failed[np.minimum(after, len(failed) - 1)] - inner
    nearest = np.minimum(
        np.where(after > 0, distance, np.inf), np.where(after < len(failed), right, np.inf)
    )
    reach = failed[-1] - failed[0] + 1
    buildable: Floats = nearest / (nearest + reach)
    between = (after > 0) & (after < len(failed))
    buildable = np.where(between, buildable / 2, buildable)
    return np.where(np.isin(inner, failed), 0.0, buildable)


def _bits(share: Floats) -> Floats:
    inside = np.clip(share, 1e-12, 1 - 1e-12)
    bits: Floats = -inside * np.log2(inside) - (1 - inside) * np.log2(1 - inside)
    return np.where((share <= 0) | (share >= 1), 0.0, bits)
