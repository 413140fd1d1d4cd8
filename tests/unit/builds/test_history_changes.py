"""A commit's change on another tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import MAIN_C, Past, fingerprint, git

from dsbuilds.history import commit_change
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import SourceError

LINES = [f"line {number}\n" for number in range(20)]
LATIN = "caf\xe9\r\n"  # bytes that are no UTF-8, and a line end that text mode would change


def text(**changed: str) -> str:
    return "".join(changed.get(f"l{number}", line) for number, line in enumerate(LINES))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """On main: begin - base - slow - late; old parted at base; side merged as M."""
    past = Past.begin(tmp_path_factory.mktemp("original") / "user")
    past.commit("base", {MAIN_C: text()})
    past.commit("slow", {MAIN_C: text(l3="slow\n"), "ldap/new.c": LATIN})
    past.commit("late", {MAIN_C: text(l3="slow\n", l15="late\n")})
    past.switch("old", "base")
    past.commit("old", {MAIN_C: text(l15="old\n"), "README.md": "old\n"})
    past.switch("side", "base")
    past.commit("s1", {"ldap/s1.c": "s1"})
    past.commit("s2", {"ldap/s2.c": "s2"})
    past.switch("main")
    past.merge("M", "side")
    return past


@pytest.fixture
def past(original: Past, tmp_path: Path) -> Past:
    return original.copy(tmp_path / "user")


def picked(repository: Repository, commit: str, onto: str, *, reverse: bool = False) -> str:
    return commit_change.picked(repository, commit, onto, reverse=reverse).tree


def opened(past: Past) -> Repository:
    return Repository.open(str(past.folder))


def content(past: Past, tree: str, path: str) -> bytes | None:
    repository = opened(past)
    done = Tree(git=repository.git, id=tree, origin="picked").read(path)
    return None if done is None else done.encode()


@pytest.mark.whole
def test_a_change_goes_onto_another_branch(past: Past) -> None:
    tree = picked(opened(past), past["slow"], past["old"])
    assert content(past, tree, MAIN_C) == text(l3="slow\n", l15="old\n").encode()
    assert content(past, tree, "README.md") == b"old\n"


@pytest.mark.whole
def test_bytes_stay_what_they_are(past: Past) -> None:
    repository = opened(past)
    tree = picked(repository, past["slow"], past["old"])
    assert repository.git.must("rev-parse", f"{tree}:ldap/new.c", what="x") == repository.git.must(
        "rev-parse", f"{past['slow']}:ldap/new.c", what="x"
    )


@pytest.mark.whole
def test_a_change_is_taken_away_below_later_ones(past: Past) -> None:
    tree = picked(opened(past), past["slow"], past["M"], reverse=True)
    assert content(past, tree, MAIN_C) == text(l15="late\n").encode()
    assert content(past, tree, "ldap/new.c") is None
    assert content(past, tree, "ldap/s1.c") == b"s1"


def test_a_merge_is_all_that_it_brought(past: Past) -> None:
    tree = picked(opened(past), past["M"], past["old"])
    assert content(past, tree, "ldap/s1.c") == b"s1"
    assert content(past, tree, "ldap/s2.c") == b"s2"
    back = picked(opened(past), past["M"], past["M"], reverse=True)
    assert back == opened(past).commit(past["late"]).tree


@pytest.mark.whole
def test_trees_serve_as_well_as_commits(past: Past) -> None:
    repository = opened(past)
    once = picked(repository, past["slow"], past["old"])
    assert picked(repository, past["late"], past["slow"]) == repository.commit(past["late"]).tree
    assert picked(repository, past["slow"], once) == once  # it is there already
    assert picked(repository, past["slow"], once, reverse=True) == (
        repository.commit(past["old"]).tree
    )


@pytest.mark.whole
def test_what_is_not_there_cannot_be_taken_away(past: Past) -> None:
    repository = opened(past)
    old = repository.commit(past["old"]).tree
    assert picked(repository, past["slow"], old, reverse=True) == old


def test_the_first_commit_is_a_change_of_nothing(past: Past) -> None:
    repository = opened(past)
    assert picked(repository, past["begin"], past["begin"]) == (
        repository.commit(past["begin"]).tree
    )


@pytest.mark.whole
def test_a_change_follows_a_file_that_moved(past: Past) -> None:
    past.switch("moved", "base")
    past.commit("moved", {MAIN_C: None, "ldap/servers/slapd/core.c": text()})
    tree = picked(opened(past), past["slow"], past["moved"])
    assert content(past, tree, "ldap/servers/slapd/core.c") == text(l3="slow\n").encode()


@pytest.mark.whole
def test_a_conflict_names_the_file_and_the_lines(past: Past) -> None:
    with pytest.raises(SourceError) as caught:
        picked(opened(past), past["late"], past["old"])
    said = caught.value.message
    assert f"{past['late'][:12]} cannot be applied to {past['old'][:12]}" in said
    assert f"CONFLICT (content): Merge conflict in {MAIN_C}" in said
    assert f"{MAIN_C}, line 16:" in said
    assert "old\n=======\nlate\n" in said


@pytest.mark.whole
def test_a_conflict_over_a_file_that_is_gone_names_it(past: Past) -> None:
    past.switch("gone", "base")
    past.commit("gone", {MAIN_C: None})
    with pytest.raises(SourceError, match=r"modify/delete.*main\.c"):
        picked(opened(past), past["late"], past["gone"])


def test_the_border_of_a_shallow_clone_is_no_change(past: Past, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{past.folder}", "shallow")
    with pytest.raises(SourceError, match="shallow") as caught:
        picked(Repository.open(str(tmp_path / "shallow")), past["M"], past["M"])
    assert "git fetch --unshallow" in caught.value.hint


@pytest.mark.whole
def test_nothing_is_written_to_the_user_s_repository(past: Past) -> None:
    before = fingerprint(past.folder)
    picked(opened(past), past["slow"], past["old"])
    assert fingerprint(past.folder) == before


@pytest.mark.whole
def test_the_same_pick_is_the_same_tree(past: Past) -> None:
    one, other = (picked(opened(past), past["slow"], past["old"]) for _ in range(2))
    assert one == other


UI, TEST, PAGE = "src/cockpit/a.jsx", "dirsrvtests/a.py", "man/a.5"
CONSTANTS = "#define A 1\n#define B 2\n"


@pytest.fixture
def meeting(tmp_path: Path) -> Past:
    """The change `slow` and a later one meet in a test, a web page and neighbouring constants."""
    past = Past.begin(tmp_path / "user")
    others = {UI: "one\n", TEST: "one\n", PAGE: "one\n"}
    past.commit("base", {MAIN_C: CONSTANTS, **others, "Makefile.am": f"{PAGE}\n"})
    past.commit("slow", {MAIN_C: CONSTANTS.replace("1", "9"), **dict.fromkeys(others, "two\n"),
                         "man/new.5": "new\n"})  # fmt: skip
    past.commit("late", {MAIN_C: "#define A 9\n#define B 8\n", UI: "three\n", TEST: "three\n"})
    return past


@pytest.mark.whole
def test_only_what_a_build_reads_is_changed(meeting: Past) -> None:
    found = commit_change.picked(opened(meeting), meeting["slow"], meeting["late"], reverse=True)
    assert found.items == ("main.c",)
    assert content(meeting, found.tree, MAIN_C) == b"#define A 1\n#define B 8\n"
    assert content(meeting, found.tree, UI) == content(meeting, found.tree, TEST) == b"three\n"
    assert content(meeting, found.tree, PAGE) == b"one\n"  # it follows where nobody else changed it
    assert content(meeting, found.tree, "man/new.5") is None


@pytest.mark.whole
def test_what_overlaps_is_named_by_its_items(meeting: Past) -> None:
    meeting.commit("later", {MAIN_C: "#define A 7\n#define B 8\n"})
    with pytest.raises(commit_change.OverlapError, match=r"main\.c: #define A\n") as caught:
        picked(opened(meeting), meeting["slow"], meeting["later"], reverse=True)
    (overlap,) = caught.value.overlaps
    assert (overlap.path, overlap.items) == (MAIN_C, {"#define A"})
