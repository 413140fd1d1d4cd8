"""Where a line can be searched: its ends, or what is nearest to them. Core pure logic, no I/O.

[-, -, ?, -, ?, ?, ?, ok, …]   the first places tried from an end that fails are 0, 1, 3, 7 …
[-, -, ?, -, ?, -, ok, ok, …]  then what lies between the last failure and the first success
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence


def ends(
    names: Sequence[str], failed: Collection[str], measured: Collection[str]
) -> tuple[int, int] | None:
    """The ends, or what to try in their place; None when fewer than two are left.

    Unmeasurable candidates come in stretches; passing one costs the logarithm of its length.
    """
    fails, works = failed.__contains__, measured.__contains__
    last = len(names) - 1
    if last > 0 and not fails(names[0]) and not fails(names[last]):
        return 0, last
    low = _nearest(names, fails, works)
    high = last - _nearest(names[::-1], fails, works)
    return (low, high) if low < high else _walked(names, fails)


def _nearest(
    names: Sequence[str], fails: Callable[[str], bool], works: Callable[[str], bool]
) -> int:
    """The place nearest to the start that can be measured, or the one to try next."""
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
    """The outermost two that did not fail."""
    left = [place for place, name in enumerate(names) if not fails(name)]
    return (left[0], left[-1]) if len(left) > 1 else None


def moved(names: Sequence[str], bounds: tuple[int, int]) -> str:
    """The note when an end is replaced; empty while both are the ones asked for."""
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
