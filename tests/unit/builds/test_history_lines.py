"""Lines from good to bad, on histories as they really are."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest
from histories import Past, git, imported_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbuilds.git import Git
from dsbuilds.history.lines import Line, count, lines_between, side_lines
from dsbuilds.history.repository import Repository
from dsharness.errors import SourceError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past.begin(tmp_path / "user")


def opened(past: Past) -> Repository:
    return _opened(past.folder, past.clock)


@cache  # until the next commit
def _opened(folder: Path, clock: int) -> Repository:
    return Repository.open(str(folder))


def line(repository: Repository, good: str, bad: str) -> Line:
    """The only line."""
    (found,) = lines_between(repository, good, bad)
    return found


def names(past: Past, found: Line) -> str:
    return " ".join(past.names(found.commits))


def sides(past: Past, merge: str, of: Line) -> list[str]:
    return [names(past, each) for each in side_lines(opened(past), past[merge], *of.known)]


def test_a_straight_line(past: Past) -> None:
    for name in ("a", "b", "c"):
        past.commit(name)
    found = line(opened(past), past["begin"], past["c"])
    assert names(past, found) == "begin a b c"
    assert found.notes == ()
    assert side_lines(opened(past), past["b"], past["begin"]) == ()
    assert side_lines(opened(past), past["begin"], past["begin"]) == ()


def test_a_merged_side_branch_is_a_line_of_its_own(past: Past) -> None:
    past.commit("a")
    past.switch("side", "begin")
    past.commit("s1")
    past.commit("s2")
    past.switch("main")
    past.merge("M", "side")
    past.commit("b")
    found = line(opened(past), past["begin"], past["b"])
    assert names(past, found) == "begin a M b"
    assert sides(past, "M", found) == ["a s1 s2 M"]
    assert count(opened(past), past["begin"], past["b"]) == 5


def test_an_octopus_has_a_line_for_each_branch(past: Past) -> None:
    for branch in ("x", "y"):
        past.switch(branch, "begin")
        past.commit(f"{branch}1")
    past.switch("z", "x1")  # shares x1 with the branch before it
    past.commit("z1")
    past.switch("main")
    past.commit("a")
    past.merge("O", "x", "y", "z")
    found = line(opened(past), past["begin"], past["O"])
    # git leaves x out of the parents, as z holds it
    assert sorted(sides(past, "O", found)) == ["a x1 z1 O", "a y1 O"]


def test_what_two_branches_of_an_octopus_share_is_on_one_line(tmp_path: Path) -> None:
    graph = [[], [0], [1], [1], [0], [4, 2, 3]]
    c = imported_graph(tmp_path / "g.git", graph)
    repository = Repository(source="g", git=Git(folder=tmp_path / "g.git"))
    found = line(repository, c[0], c[5])
    assert found.commits == (c[0], c[4], c[5])
    assert [each.commits for each in side_lines(repository, c[5], *found.known)] == [
        (c[4], c[1], c[2], c[5]),
        (c[4], c[3], c[5]),
    ]


def test_a_side_branch_inside_a_side_branch(past: Past) -> None:
    past.switch("outer", "begin")
    past.commit("o1")
    past.switch("inner", "o1")
    past.commit("i1")
    past.switch("outer")
    past.commit("o2")
    past.merge("N", "inner")
    past.switch("main")
    past.commit("a")
    past.merge("M", "outer")
    found = line(opened(past), past["begin"], past["M"])
    (outer,) = side_lines(opened(past), past["M"], *found.known)
    assert names(past, outer) == "a o1 o2 N M"
    assert sides(past, "N", outer) == ["o2 i1 N"]


def test_main_merged_into_a_side_branch_is_searched_once(past: Past) -> None:
    """Criss-cross: each merged the other."""
    past.switch("side", "begin")
    past.commit("s1")
    past.switch("main")
    past.commit("a")
    past.switch("side")
    past.merge("X", "main")
    past.commit("s2")
    past.switch("main")
    past.git("merge", "--quiet", "--no-ff", "-m", "Y", past["s1"])
    past.named["Y"] = past.git("rev-parse", "HEAD")
    past.merge("M", "side")
    found = line(opened(past), past["begin"], past["M"])
    assert names(past, found) == "begin a Y M"
    (side,) = side_lines(opened(past), past["M"], *found.known)
    assert names(past, side) == "Y X s2 M"
    assert sides(past, "X", side) == []  # what main brought is on the first line
    assert sides(past, "Y", found) == ["a s1 Y"]


def test_good_inside_a_merged_side_branch(past: Past) -> None:
    past.switch("side", "begin")
    past.commit("s1")
    past.commit("s2")
    past.commit("s3")
    past.switch("main")
    past.merge("M", "side")
    past.commit("b")
    found = line(opened(past), past["s2"], past["b"])
    assert names(past, found) == "s2 M b"
    assert sides(past, "M", found) == ["s2 s3 M"]  # not from begin, which is older than good


def test_branches_that_have_parted_are_two_lines(past: Past) -> None:
    past.commit("base")
    past.switch("old", "base")
    past.commit("old1")
    past.commit("old2")
    past.switch("main")
    past.commit("b1")
    past.commit("b2")
    to_bad, to_good = lines_between(opened(past), past["old2"], past["b2"])
    assert names(past, to_bad) == "base b1 b2"
    assert names(past, to_good) == "base old1 old2"
    (note,) = to_bad.notes
    assert f"have parted at {past['base'][:12]}: all three" in note
    assert to_good.notes == ()


def test_branches_that_have_parted_hold_merges_of_their_own(past: Past) -> None:
    past.commit("base")
    past.switch("old", "base")
    past.commit("old1")
    past.switch("fix", "base")
    past.commit("f1")
    past.switch("old")
    past.merge("M", "fix")
    past.switch("main")
    past.commit("b1")
    to_bad, to_good = lines_between(opened(past), past["M"], past["b1"])
    assert names(past, to_good) == "base old1 M"
    assert sides(past, "M", to_good) == ["old1 f1 M"]
    assert names(past, to_bad) == "base b1"


def test_branches_that_parted_twice_say_so(past: Past) -> None:
    past.switch("old", "begin")
    past.commit("o1")
    past.switch("main")
    past.commit("m1")
    past.git("merge", "--quiet", "--no-ff", "-m", "M", past["o1"])
    past.commit("m2")
    past.switch("old")
    past.git("merge", "--quiet", "--no-ff", "-m", "O", past["m1"])
    past.commit("o2")
    to_bad, to_good = lines_between(opened(past), past["o2"], past["m2"])
    assert to_bad.commits[0] == to_good.commits[0]
    assert names(past, to_bad).split()[0] in {"m1", "o1"}
    assert "the best of 2 common ancestors" in to_bad.notes[0]
    assert past["m1"] not in to_bad.commits[1:]  # good has it
    assert past["o1"] not in to_good.commits[1:]  # bad has it


def test_swapped_ends_are_searched_in_the_order_of_history(past: Past) -> None:
    past.commit("a")
    past.commit("b")
    found = line(opened(past), past["b"], past["begin"])
    assert names(past, found) == "begin a b"
    (note,) = found.notes
    assert f"good {past['b'][:12]} comes after bad {past['begin'][:12]}: they are swapped" in note


def test_one_commit_is_no_line(past: Past) -> None:
    with pytest.raises(SourceError, match="the same commit"):
        lines_between(opened(past), past["begin"], past["begin"])


def test_histories_without_a_common_ancestor(past: Past) -> None:
    past.git("checkout", "--quiet", "--orphan", "other")
    past.commit("other", {"x": "x"})
    with pytest.raises(SourceError, match="no common ancestor"):
        line(opened(past), past["begin"], past["other"])


@pytest.fixture
def shallow(past: Past, tmp_path: Path) -> Past:
    """The newest three of six commits: d, e, f; d is the border."""
    for name in ("a", "b", "c", "d", "e", "f"):
        past.commit(name)
    source = f"file://{past.folder}"
    git(tmp_path, "clone", "--quiet", "--depth", "3", "--no-single-branch", source, "shallow")
    return Past(folder=tmp_path / "shallow", named=past.named)


@pytest.mark.few(1)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_shallow_clone_serves_as_far_as_it_reaches(shallow: Past, scheme: str) -> None:
    repository = Repository.open(f"{scheme}{shallow.folder}")
    assert repository.shallow
    found = line(repository, shallow["d"], shallow["f"])
    assert names(shallow, found) == "d e f"
    with pytest.raises(SourceError, match="shallow") as caught:
        repository.revision(shallow["a"])
    assert "git fetch --unshallow" in caught.value.hint


@pytest.mark.few(1)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_below_the_border_of_a_shallow_clone(shallow: Past, tmp_path: Path, scheme: str) -> None:
    # a second border: good is there, but not what lies between
    whole = f"file://{tmp_path / 'user'}"
    git(tmp_path / "user", "branch", "early", shallow["b"])
    git(shallow.folder, "fetch", "--quiet", "--depth", "1", whole, "early:early")
    repository = Repository.open(f"{scheme}{shallow.folder}")
    assert repository.revision("early") == shallow["b"]
    with pytest.raises(SourceError, match="below its border") as caught:
        line(repository, shallow["b"], shallow["f"])
    assert "git fetch --unshallow" in caught.value.hint


@pytest.mark.few(1)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_completed_clone_is_no_longer_shallow(shallow: Past, tmp_path: Path, scheme: str) -> None:
    source = f"{scheme}{shallow.folder}"
    Repository.open(source)
    git(shallow.folder, "fetch", "--quiet", "--unshallow")
    repository = Repository.open(source)
    assert not repository.shallow
    assert names(shallow, line(repository, shallow["a"], shallow["f"])) == "a b c d e f"


def test_a_side_branch_from_below_the_border(past: Past, tmp_path: Path) -> None:
    past.switch("side", "begin")
    past.commit("s1")
    past.switch("main")
    for name in ("a", "b", "c", "d"):
        past.commit(name)
    past.merge("M", "side")
    past.commit("e")
    git(tmp_path, "clone", "--quiet", "--depth", "3", f"file://{past.folder}", "shallow")
    repository = Repository.open(str(tmp_path / "shallow"))
    with pytest.raises(SourceError, match="below its border"):
        line(repository, past["d"], past["e"])


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """Random histories with merges of up to three branches; commit 0 is the only root."""
    size = draw(st.integers(2, 14))
    recent = st.integers(1, 5)
    return [[]] + [
        sorted({max(0, n - draw(recent)) for _ in range(draw(st.integers(1, 3)))}, reverse=True)
        for n in range(1, size)
    ]  # fmt: skip


@pytest.mark.whole
@settings(max_examples=2 * settings.default.max_examples // 5)
@given(graphs(), st.data())
def test_all_lines_together_hold_every_commit_once(graph: list[list[int]], data) -> None:
    with tempfile.TemporaryDirectory() as folder:
        hashes = imported_graph(Path(folder) / "g.git", graph)
        repository = Repository(source="g", git=Git(folder=Path(folder) / "g.git"))
        ends = st.integers(0, len(graph) - 1)
        good, bad = (hashes[data.draw(ends)] for _ in range(2))
        if good == bad:
            return
        whole = lines_between(repository, good, bad)
        todo = [(each.commits[1:], each.known) for each in whole]
        searched: list[str] = []
        while todo:
            inside, known = todo.pop()
            searched += inside
            for merge in inside:
                for side in side_lines(repository, merge, *known):
                    assert side.commits[-1] == merge
                    todo.append((side.commits[1:-1], side.known))
        between = repository.git.must("rev-list", f"{good}...{bad}", what="all").split()
        assert sorted(searched) == sorted(between)
