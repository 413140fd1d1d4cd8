"""What would be without a change, or with it: which ways there are, and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import MAIN_C, Past

from dsbuilds.history.commit_change import OverlapError
from dsbuilds.history.counterfactual import MOST_OTHERS, Change, Counterfactual
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree

RUST = "src/plugins/pwdchan/src/lib.rs"
LINES = [f"line {number}\n" for number in range(9)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))


def function(*lines: str) -> str:
    return "int\nf(void)\n{\n" + "".join(f"    {line};\n" for line in lines) + "}\n"


def ways(past: Past, change: str, onto: str, *, reverse: bool) -> list[Counterfactual]:
    repository = Repository.open(str(past.folder))
    commit = repository.commit(past[onto])
    tree = Tree(git=repository.git, id=commit.tree, origin=onto, revision=commit.hash)
    return list(Change(repository=repository, commits=(past[change],)).ways(tree, reverse=reverse))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Base - slow - other - late - last: late changes the line that slow brought."""
    past = Past.begin(tmp_path_factory.mktemp("original") / "user")
    past.commit("base", {MAIN_C: function("a", "b")})
    past.commit("slow", {MAIN_C: function("a", "slow", "b")})
    past.commit("other", {MAIN_C: function("a", "slow", "b") + "int g;\n"})
    past.commit("late", {MAIN_C: function("a", "slow + 1", "b") + "int g;\n"})
    past.commit("last", {"ldap/new.c": "new\n"})
    return past


@pytest.fixture
def past(original: Past, tmp_path: Path) -> Past:
    return original.copy(tmp_path / "user")


@pytest.mark.whole
def test_a_change_that_fits_says_nothing(past: Past) -> None:
    (way,) = ways(past, "slow", "other", reverse=True)
    assert way.how == ""
    assert way.tree.read(MAIN_C) == function("a", "b") + "int g;\n"


@pytest.mark.whole
def test_a_later_commit_that_changed_the_same_lines_goes_too(past: Past) -> None:
    (way,) = ways(past, "slow", "last", reverse=True)
    assert way.how == f"together with {past['late'][:12]}, which changed the same lines later"
    assert way.tree.read(MAIN_C) == function("a", "b") + "int g;\n"
    assert way.tree.read("ldap/new.c") == "new\n"
    assert way.tree.revision is None  # it is no commit's source


def test_an_earlier_commit_that_it_builds_on_comes_along(past: Past) -> None:
    (way,) = ways(past, "late", "base", reverse=False)
    assert way.how == f"together with {past['slow'][:12]}, which it builds on"
    assert way.tree.read(MAIN_C) == function("a", "slow + 1", "b")


@pytest.mark.whole
def test_no_more_go_than_are_needed(past: Past) -> None:
    past.commit("more", {MAIN_C: function("a", "slow + 1", "b", "c") + "int g;\n"})
    (way,) = ways(past, "slow", "more", reverse=True)
    assert way.how.startswith(f"together with {past['late'][:12]}, ")
    assert way.tree.read(MAIN_C) == function("a", "b", "c") + "int g;\n"


@pytest.mark.whole
def test_too_many_commits_in_the_way_are_named_no_more(past: Past) -> None:
    for number in range(MOST_OTHERS):
        past.commit(f"again {number}", {MAIN_C: function("a", f"slow + 2 + {number}", "b")})
    with pytest.raises(OverlapError, match=r"main\.c: f\(\)"):
        ways(past, "slow", f"again {MOST_OTHERS - 1}", reverse=True)


@pytest.mark.whole
def test_a_named_edit_is_another_way(tmp_path: Path) -> None:
    """The rounds were raised where another commit rewrote the line, without a history between."""

    def rounds(number: str, more: str = "") -> str:
        return f"const DEFAULT_PBKDF2_ROUNDS: usize = {number};{more}\n"

    past = Past.begin(tmp_path / "user")
    past.commit("base", {RUST: rounds("10_000")})
    past.commit("slow", {RUST: rounds("100_000")})
    for number in range(MOST_OTHERS + 1):
        past.commit(f"note {number}", {RUST: rounds("100_000", f" // {number}")})
    (way,) = ways(past, "slow", f"note {MOST_OTHERS}", reverse=True)
    assert way.how == "by the named edit rust-rounds=10000, not by its whole change"
    assert way.tree.read(RUST) == rounds("10_000", f" // {MOST_OTHERS}")
    back = ways(past, "slow", "base", reverse=False)
    assert [each.how for each in back] == [
        "", "by the named edit rust-rounds=100000, not by its whole change",
    ]  # fmt: skip
