"""Equal commits stand together.

On the tree of 3.1.2 (2,372 files) with 2,000 commits of four files each on top, all keys take
0.25 s and the line 0.04 s, on 2 cores that build something else meanwhile.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from histories import MAIN_C, Past
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.git import Git
from dsbuilds.history.lines import collapse, lines_between, server_keys, steps_along
from dsbuilds.history.relevant_files import server_key
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsharness.products import source_facts

SOURCE = source_facts("389-ds")

CARGO = "src/librslapd/Cargo.toml"


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    past = Past.begin(tmp_path_factory.mktemp("history") / "user")
    past.commit("c1", {MAIN_C: "1"})
    past.commit("docs", {"README.md": "more", "docs/x.dox": "x"})
    past.commit("ui", {"src/cockpit/389-console/index.html": "<html>"})
    past.commit("tests", {"dirsrvtests/tests/suites/a.py": "a", "test/main.c": "m"})
    past.commit("rust", {CARGO: "[package]"})
    past.commit("nothing", {})
    past.commit("build", {"Makefile.am": "all:"})
    past.commit("back", {"Makefile.am": None})
    return past


def opened(past: Past) -> Repository:
    return Repository(source="user", git=Git(folder=past.folder / ".git"))


def classes(past: Past, *paths: str) -> list[str]:
    repository = opened(past)
    commits = lines_between(repository, past["begin"], past["back"])[0].commits
    keys = server_keys(repository, commits, paths=paths)
    return [" ".join(past.names(each.commits)) for each in collapse(commits, keys.__getitem__)]


def test_commits_that_change_no_server_join_the_one_before(past: Past) -> None:
    assert classes(past) == ["begin", "c1 docs ui tests", "rust nothing", "build", "back"]


def test_with_paths_only_they_can_tell_commits_apart(past: Past) -> None:
    assert classes(past, "src") == ["begin c1 docs ui tests", "rust nothing build back"]
    assert classes(past, "ldap/", "src/lib") == [
        "begin",
        "c1 docs ui tests rust nothing build back",
    ]
    assert classes(past, MAIN_C)[0] == "begin"


def test_what_the_others_of_a_class_change_has_a_name(past: Past) -> None:
    repository = opened(past)
    steps = steps_along(
        repository, lines_between(repository, past["begin"], past["back"])[0].commits
    )
    kinds = {
        name: SOURCE.kinds_of(step.path for step in steps[past[name]])
        for name in ("docs", "ui", "tests", "nothing", "rust")
    }
    assert kinds == {
        "docs": ("docs",), "ui": ("web UI",), "tests": ("tests",), "nothing": (),
        "rust": ("server",),
    }  # fmt: skip


def test_a_mode_counts_and_a_name_may_be_odd(tmp_path: Path) -> None:
    odd = "ldap/with\ttab, \n and \xe9.c"
    past = Past.begin(tmp_path / "user")
    (past.folder / MAIN_C).chmod(0o755)
    past.commit("mode", {})
    past.commit("odd", {odd: "x"})
    repository = opened(past)
    commits = [past["begin"], past["mode"], past["odd"]]
    steps = steps_along(repository, commits)
    (mode,), (new,) = steps[past["mode"]], steps[past["odd"]]
    assert (str(mode.before)[:6], str(mode.after)[:6]) == ("100644", "100755")
    assert (new.path, new.before) == (odd, None)
    keys = server_keys(repository, commits)
    assert len(set(keys.values())) == 3


def test_equal_servers_have_equal_keys_wherever_they_stand(past: Past) -> None:
    """The quick key tells apart exactly what the key of the whole listing tells apart."""
    repository = opened(past)
    commits = lines_between(repository, past["begin"], past["back"])[0].commits
    quick = server_keys(repository, commits)
    whole = {
        commit: server_key(Tree(git=repository.git, id=commit, origin=commit).listing())
        for commit in commits
    }
    for one in commits:
        for other in commits:
            assert (quick[one] == quick[other]) == (whole[one] == whole[other])
    assert quick[past["back"]] == quick[past["rust"]]
    assert server_keys(repository, commits[3:])[commits[-1]] == quick[commits[-1]]


def test_a_line_of_one(past: Past) -> None:
    keys = server_keys(opened(past), [past["c1"]])
    assert list(keys) == [past["c1"]]


@given(st.lists(st.sampled_from("abc")))
def test_collapsing_keeps_the_order_and_loses_nobody(keys: list[str]) -> None:
    commits = [str(number) for number in range(len(keys))]
    found = collapse(commits, lambda commit: keys[int(commit)])
    assert [commit for each in found for commit in each.commits] == commits
    assert all(len({keys[int(commit)] for commit in each.commits}) == 1 for each in found)
    assert all(keys[int(a.first)] != keys[int(b.first)] for a, b in pairwise(found))
