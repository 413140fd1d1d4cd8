"""Which two candidates stand for the ends of a line when the ends themselves fail."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dssearch.bayes.line_places import ends, moved, split, split_between
from dssearch.bayes.track import track


@pytest.mark.parametrize(
    ("line", "failed", "measured", "tried"),
    [
        ("abcdefgh", "", "", "ah"),
        ("abcdefgh", "a", "h", "bh"),
        ("abcdefgh", "ab", "h", "dh"),  # b failed too: the stretch may be long
        ("abcdefgh", "ab", "dh", "ch"),  # d works: what lies between b and d
        ("abcdefgh", "abc", "dh", "dh"),
        ("abcdefgh", "abce", "dh", "dh"),  # what fails within the range moves no end
        ("abcdefgh", "h", "a", "ag"),
        ("abcdefgh", "ah", "", "bg"),
        ("abcdefgh", "abdh", "", "cg"),  # nothing left to leap to: the outermost that is left
        ("ab", "a", "", None),
        ("a", "", "", None),
        ("abc", "abc", "", None),
    ],
)
def test_ends(line: str, failed: str, measured: str, tried: str | None) -> None:
    found = ends(line, failed, measured)
    assert (found and line[found[0]] + line[found[1]]) == tried


@given(st.data())
def test_the_nearest_is_found_in_the_logarithm_of_the_stretch(data: st.DataObject) -> None:
    length = data.draw(st.integers(2, 300))
    names = tuple(f"c{number}" for number in range(length))
    stretch = data.draw(st.integers(0, length // 2 - 1))
    bad = set(names[:stretch])
    failed: set[str] = set()
    measured: set[str] = set()
    while True:
        found = ends(names, failed, measured)
        assert found is not None
        untried = {names[at] for at in found} - measured
        if not untried:
            break
        failed |= untried & bad
        measured |= untried - bad
    assert found == (stretch, length - 1)
    assert len(failed) + len(measured) <= 2 * math.log2(stretch + 1) + 4


def test_what_is_told() -> None:
    assert moved("abcd", (0, 3)) == ""
    assert moved("abcd", (1, 3)) == "the end a cannot be measured: trying b, 1 candidate further in"
    assert moved("abcdef", (0, 3)) == (
        "the end f cannot be measured: trying d, 2 candidates further in"
    )


def entropy(*chances: float) -> float:
    return -sum(each * math.log2(each) for each in chances if each > 0)


@given(st.data())
def test_between_what_is_under_way_is_measured_what_adds_most(data: st.DataObject) -> None:
    length = data.draw(st.integers(3, 60))
    line = track(tuple(f"c{number}" for number in range(length)), {})
    places = data.draw(st.sets(st.integers(0, length - 1), max_size=4))
    found = split_between(line, 0, (0, length - 1), [], sorted(places))
    inside = sorted(at for at in places if 0 < at < length - 1)
    if not inside:
        assert found == split(line, 0, (0, length - 1), [])
        return
    borders = [0, *inside, length - 1]

    def told(*at: int) -> float:
        """Bits about where the step is, once these places are measured."""
        edges = sorted({0, length - 1, *at})
        return entropy(*((high - low) / (length - 1) for low, high in itertools.pairwise(edges)))

    free = [at for at in range(1, length - 1) if at not in inside]
    if found is None:
        assert not free
        return
    assert found.position in free
    added = told(*inside, found.position) - told(*inside)
    assert added == pytest.approx(max(told(*inside, at) - told(*inside) for at in free))
    assert found.news * told(found.position) == pytest.approx(added)
    assert found.share == pytest.approx(found.position / (length - 1))
    assert borders[0] < found.position < borders[-1]
