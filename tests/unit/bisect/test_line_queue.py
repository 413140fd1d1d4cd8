"""Lines are searched until every step is explained, and inward through merges."""

from __future__ import annotations

import itertools

import pytest
from worlds import World

from dsbisect.commits.line_queue import Hunter, changed_sides, hunt, hunt_parted
from dssearch.bayes.bayes_search import Bayes

NAMES = [f"c{number:02}" for number in range(32)]


class Laboratory:
    """Searches any line of a world with the real search, and remembers which."""

    def __init__(self, costs, broken=()):
        self.costs, self.broken, self.lines = costs, frozenset(broken), []
        self.told = []  # each culprit, and how many lines had been searched by then

    def search(self, line):
        self.lines.append(line)
        world = World({name: self.costs[name] for name in line}, broken=self.broken & {*line})
        return world.search(Bayes())

    def hunt(self, line, sides=None, *, every=True):
        inside = sides or {}
        return hunt(tuple(line), self.hunter(lambda commit: inside.get(commit, ()), every=every))

    def hunter(self, sides, *, every=True):
        return Hunter(search=self.search, sides=sides, blamed=self.blamed, every=every)

    def blamed(self, culprit, left):
        self.told.append((culprit.after, len(self.lines)))
        self.left = left


def blamed(found):
    return sorted(boundary.after for boundary in found.culprits)


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize(("one", "two"), [(3, 20), (1, 31), (10, 11), (1, 2), (30, 31)])
def test_two_culprits_are_both_found(one, two):
    costs = {
        name: 1.0 * (4 if number >= one else 1) * (5 if number >= two else 1)
        for number, name in enumerate(NAMES)
    }
    assert blamed(Laboratory(costs).hunt(NAMES)) == [NAMES[one], NAMES[two]]


def test_a_culprit_is_told_before_the_next_is_searched():
    costs = [1.0] * 10 + [50.0] * 12 + [99.0] * 10
    lab = Laboratory(dict(zip(NAMES, costs, strict=True)))
    found = lab.hunt(NAMES)
    assert [name for name, _ in lab.told] == [boundary.after for boundary in found.culprits]
    assert [lines for _, lines in lab.told][:2] == [1, 2]


def test_the_first_culprit_is_enough_and_what_is_left_is_told():
    costs = [1.0] * 10 + [50.0] * 12 + [99.0] * 10
    lab = Laboratory(dict(zip(NAMES, costs, strict=True)))
    found = lab.hunt(NAMES, every=False)
    (culprit,) = found.culprits
    assert len(lab.lines) == 1
    assert culprit.after == NAMES[10]
    assert found.left == lab.left == (tuple(NAMES[10:]),)


def test_one_culprit_is_searched_once():
    lab = Laboratory({name: 9.0 if number >= 13 else 1.0 for number, name in enumerate(NAMES)})
    assert blamed(lab.hunt(NAMES, every=False)) == [NAMES[13]]
    assert len(lab.lines) == 1


@pytest.mark.whole
def test_no_culprit_is_named_where_there_is_none():
    lab = Laboratory(dict.fromkeys(NAMES, 1.0))
    found = lab.hunt(NAMES)
    assert found.culprits == ()
    assert found.whole.direction == "none"


MERGED = {"g": 1.0, "a": 1.0, "M": 9.0, "b": 9.0}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("side", "culprit"),
    [
        ({"s1": 1.0, "s2": 9.0, "s3": 9.0}, "s2"),
        ({"s1": 9.0, "s2": 9.0}, "s1"),
        ({"s1": 1.0, "s2": 1.0}, "M"),  # the merge itself: neither side alone is slow
    ],
)
def test_a_merge_is_looked_into(side, culprit):
    lab = Laboratory(MERGED | side)
    line = ("a", *side, "M")
    assert blamed(lab.hunt(("g", "a", "M", "b"), {"M": [line]})) == [culprit]
    assert lab.lines[1] == line


def test_an_equal_commit_stands_for_the_merge_at_the_end_of_its_line():
    lab = Laboratory(MERGED | {"s1": 1.0, "s2": 9.0})
    assert blamed(lab.hunt(("g", "a", "M", "b"), {"M": [("a", "s1", "s2")]})) == ["s2"]


def test_merges_within_merges():
    costs = {**MERGED, "s1": 1.0, "N": 9.0, "t1": 1.0, "t2": 9.0}
    sides = {"M": [("a", "s1", "N", "M")], "N": [("s1", "t1", "t2", "N")]}
    assert blamed(Laboratory(costs).hunt(("g", "a", "M", "b"), sides)) == ["t2"]


def test_of_several_side_branches_the_guilty_one_is_found():
    costs = {**MERGED, "s1": 1.0, "t1": 9.0}
    sides = {"M": [("a", "s1", "M"), ("a", "t1", "M")]}
    assert blamed(Laboratory(costs).hunt(("g", "a", "M", "b"), sides)) == ["t1"]


def test_what_cannot_be_told_apart_is_not_looked_into():
    lab = Laboratory(MERGED | {"s1": 9.0}, broken={"a"})
    found = lab.hunt(("g", "a", "M", "b"), {"M": [("g", "s1", "M")]})
    (boundary,) = found.culprits
    assert boundary.suspects == ("a", "M")


@pytest.mark.few(1)
@pytest.mark.parametrize("broken", [range(5, 25), range(1, 31), [15]])
def test_a_broken_stretch_costs_its_logarithm(broken):
    """Neighbour after neighbour would be tried otherwise."""
    costs = {name: 9.0 if number >= 28 else 1.0 for number, name in enumerate(NAMES)}
    lab = Laboratory(costs, {NAMES[number] for number in broken})
    (boundary,) = lab.hunt(NAMES).culprits
    assert NAMES[28] in boundary.suspects or boundary.after == NAMES[28]
    assert not any(suspect for suspect in boundary.suspects[:-1] if suspect not in lab.broken)


@pytest.mark.whole
def test_nothing_is_lost_on_the_way():
    """Whatever two steps there are, every one of them is among the suspects."""
    for one, two in itertools.combinations(range(1, 6), 2):
        names = NAMES[:6]
        costs = {
            name: 1.0 * (3 if number >= one else 1) * (3 if number >= two else 1)
            for number, name in enumerate(names)
        }
        assert blamed(Laboratory(costs).hunt(names)) == [names[one], names[two]]


TO_BAD, TO_GOOD = ("base", "b1", "bad"), ("base", "g1", "good")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("good", "base", "bad", "sides"),
    [
        (1.0, 1.0, 9.0, [TO_BAD]),
        (1.0, 9.0, 9.0, [TO_GOOD]),
        (9.0, 1.0, 1.0, [TO_GOOD]),
        (1.0, 3.0, 9.0, [TO_BAD, TO_GOOD]),
        (2.0, 1.0, 4.0, [TO_BAD, TO_GOOD]),
        (1.0, 8.0, 4.0, [TO_BAD, TO_GOOD]),
        (1.0, 1.0, 1.0, []),
        (9.0, 1.0, 9.0, [TO_BAD, TO_GOOD]),  # the same on both sides: good and bad are compared
    ],
)
def test_of_branches_that_have_parted_the_sides_that_changed_are_searched(good, base, bad, sides):
    lab = Laboratory({"good": good, "base": base, "bad": bad})
    whole = lab.search(("good", "base", "bad"))
    assert list(changed_sides(whole, (TO_BAD, TO_GOOD))) == sides


@pytest.mark.parametrize("broken", ["base", "good"])
def test_where_a_point_cannot_be_measured_both_sides_are_searched(broken):
    lab = Laboratory({"good": 1.0, "base": 1.0, "bad": 9.0}, {broken})
    whole = lab.search(("good", "base", "bad"))
    found = changed_sides(whole, (TO_BAD, TO_GOOD))
    assert found == ((TO_BAD, TO_GOOD) if broken == "base" else (TO_BAD,))


def parted(good, base, bad, *, inside=None, broken=()):
    """The culprits with their directions, the direction from good to bad, and what was said."""
    costs = {"good": good, "base": base, "bad": bad, "b1": base, "g1": good, **(inside or {})}
    lab, said = Laboratory(costs, broken), []
    found = hunt_parted(
        ("good", "base", "bad"),
        (TO_BAD, TO_GOOD),
        lab.hunter(lambda _: ()),
        said.append,
    )
    blamed = [(boundary.after, boundary.direction) for boundary in found.culprits]
    return blamed, found.whole.direction, said, lab, found


@pytest.mark.parametrize(
    ("costs", "culprits", "whole", "says"),
    [
        ((1.0, 1.0, 9.0), [("bad", "slower")], "slower", "on the way to bad bad"),
        ((9.0, 1.0, 1.0), [("g1", "slower")], "faster", "on the way to good good, and bad does"),
        ((1.0, 9.0, 9.0), [("g1", "faster")], "slower", "on the way to good good, and bad does"),
        ((0.2, 1.0, 9.0), [("bad", "slower"), ("g1", "faster")], "slower", "both sides of base"),
    ],
)
def test_a_step_is_named_on_the_side_where_it_was_made(costs, culprits, whole, says):
    blamed, direction, said, lab, found = parted(*costs)
    assert (blamed, direction) == (culprits, whole)
    (note,) = said
    assert says in note
    assert found.notes == (note,)
    assert lab.lines[0] == ("good", "base", "bad")


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("base", [1.0, 9.0])
def test_ends_that_are_alike_have_no_culprit_whatever_lies_between(base):
    blamed, direction, said, lab, found = parted(1.0, base, 1.0)
    assert (blamed, direction, said) == ([], "none", [])
    assert not {"b1", "g1"} & {name for line in lab.lines for name in line}
    assert len(found.notes) == (0 if base == 1.0 else 1)  # that both differ from it


@pytest.mark.whole
def test_without_the_point_between_both_sides_are_searched():
    blamed, _, said, lab, found = parted(1.0, 1.0, 9.0, broken={"base"})
    assert ("bad", "slower") in blamed
    assert "cannot be measured: both sides are searched" in said[0]
    assert {TO_BAD, TO_GOOD} <= set(lab.lines)
    assert "base" in found.whole.unmeasured


@pytest.mark.whole
def test_a_difference_that_no_side_shows_is_undecided():
    blamed, direction, _, _, found = parted(1.0, 1.0, 9.0, broken={"bad"})
    assert blamed == []
    assert direction in {"none", "unknown"}
    seen = iter([World({"good": 1.0, "base": 1.0, "bad": 9.0}), World({"base": 1.0, "bad": 1.0})])
    hunter = Hunter(
        search=lambda _: next(seen).search(Bayes()),
        sides=lambda _: (),
        blamed=lambda culprit, left: None,
    )
    found = hunt_parted(("good", "base", "bad"), (TO_BAD, TO_GOOD), hunter, lambda _: None)
    assert found.whole.direction == "unknown"
    assert "no step was found on either side" in found.whole.summary
