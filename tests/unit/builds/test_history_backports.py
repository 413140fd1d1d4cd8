"""Where else a change went."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import MAIN_C, Past

from dsbuilds.git import Git
from dsbuilds.history.culprit import equivalents
from dsbuilds.history.repository import Repository

LINES = "".join(f"line {number}\n" for number in range(20))
V = "389-ds-base-"


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """main: begin base fix more; 2.0: the same patch; 1.4: changed by hand, says so."""
    past = Past.begin(tmp_path_factory.mktemp("history") / "user")
    past.commit("base", {MAIN_C: LINES})
    past.switch(f"{V}2.0", "base")
    past.switch(f"{V}1.4", "base")
    past.switch("main")
    past.commit("fix", {MAIN_C: LINES.replace("line 3\n", "fixed\n")})
    past.commit("more")
    past.switch(f"{V}2.0")
    past.commit("unrelated", {MAIN_C: LINES.replace("line 19\n", "other\n")})
    past.pick("fix in 2.0", "fix")
    past.switch(f"{V}1.4")
    message = f"fix\n\n(cherry picked from commit {past['fix in 2.0']})\n"
    past.commit("fix in 1.4", {MAIN_C: LINES.replace("line 3\n", "fixed by hand\n")},
                message=message)  # fmt: skip
    past.switch("feature", "base")
    past.pick("copy of 1.4", "fix in 1.4")
    past.switch("main")
    return past


ALL = ("fix", "fix in 2.0", "fix in 1.4", "copy of 1.4")


def opened(past: Past) -> Repository:
    return Repository(source="user", git=Git(folder=past.folder / ".git"))


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize("asked", ALL)
def test_every_copy_leads_to_all_others(past: Past, asked: str) -> None:
    """By patch-id from main to 2.0, by what it says to 1.4, by patch-id again to the feature."""
    assert set(past.names(equivalents(opened(past), past[asked]))) == set(ALL)


@pytest.mark.parametrize("alone", ["base", "unrelated", "more"])
def test_other_commits_are_alone(past: Past, alone: str) -> None:
    assert equivalents(opened(past), past[alone]) == (past[alone],)


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "said",
    [
        "(cherry picked from commit {})",
        "(cherry-picked from commit {})",
        "Cherry picked from: {}",
        "(Cherry picked from commit {}, with changes)",
    ],
)
def test_ways_to_say_it(tmp_path: Path, said: str) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("fix")
    past.switch("old", "begin")
    past.commit("copy", message=f"copy\n\n{said.format(past['fix'][:12])}\n")
    assert set(past.names(equivalents(opened(past), past["fix"]))) == {"fix", "copy"}


def test_an_origin_of_another_repository_still_joins_its_copies(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    message = f"fix\n\n(cherry picked from commit {'ab' * 20})\n"
    past.commit("one", message=message)
    past.switch("old", "begin")
    past.commit("other", message=message)
    assert set(past.names(equivalents(opened(past), past["one"]))) == {"one", "other"}


def test_commits_that_change_nothing_are_not_all_the_same(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("empty", {})
    past.commit("empty too", {})
    assert equivalents(opened(past), past["empty"]) == (past["empty"],)


def test_a_branch_squashed_elsewhere_is_found_from_its_merge(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.switch("side", "begin")
    past.commit("s1", {"ldap/s.c": "one\n"})
    past.commit("s2", {"ldap/s.c": "two\n"})
    past.switch("old", "begin")
    past.commit("squashed", {"ldap/s.c": "two\n"})
    past.switch("main")
    past.merge("M", "side")
    assert set(past.names(equivalents(opened(past), past["M"]))) == {"M", "squashed"}


def test_a_copy_on_a_branch_that_was_merged_and_is_gone(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("fix", {"ldap/s.c": "fixed\n"})
    past.switch("side", "begin")
    past.commit("other")
    past.pick("copy", "fix")
    past.switch("main")
    past.merge("M", "side")
    past.git("branch", "-D", "side")
    assert set(past.names(equivalents(opened(past), past["fix"]))) == {"fix", "copy"}
