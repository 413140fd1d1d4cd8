"""How commits are called by releases, and which releases have a change."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import Past, git

from dsbuilds.git import Git
from dsbuilds.history.release_names import ReleaseNames, SeriesRelease
from dsbuilds.history.repository import Repository
from dsharness.products import SourceFacts, product, source_facts

V = "389-ds-base-"
SOURCE = source_facts("389-ds")
assert SOURCE is not None


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """main: 3.0.0.rc1 fix 3.0.0 3.1.0 3.2.0; 2.0: 2.0.9, the fix, 2.0.10; others."""
    past = Past.begin(tmp_path_factory.mktemp("history") / "user")
    past.switch(f"{V}2.0", "begin")
    past.switch("main")
    past.tag(f"{V}3.0.0.rc1")
    past.commit("fix")
    for tag in ("3.0.0", "3.1.0", "3.1.1", "3.2.0"):
        past.commit(f"before {tag}")
        past.tag(f"{V}{tag}", annotated=tag == "3.1.0")
    past.commit("tip")
    past.switch(f"{V}2.0")
    past.commit("one")
    past.tag(f"{V}2.0.9")
    past.pick("fix in 2.0", "fix")
    past.tag(f"{V}2.0.10")
    past.tag("nightly")
    past.commit("two")
    past.tag(f"{V}2.0.17")
    past.pick("tip in 2.0", "tip")
    past.switch(f"{V}1.4.3", "begin")
    past.pick("tip in 1.4.3", "tip")
    past.switch("renovate/rust", "begin")
    past.commit("three")
    past.pick("tip in renovate", "tip")
    past.switch("main")
    return past


def names(folder: Path, source: SourceFacts | None = SOURCE) -> ReleaseNames:
    repository = Repository(source="user", git=Git(folder=folder / ".git"))
    assert source is not None
    return ReleaseNames(repository=repository, source=source, product=product("389-ds"))


def told(past: Past, *commits: str) -> list[str]:
    lines = names(past.folder).releases(tuple(past[each] for each in commits))
    return [line.text.replace(line.commit[:12], *past.names([line.commit])) for line in lines]


def test_one_line_for_each_series(past: Past) -> None:
    """Series that began with the fix are one line; a preview counts as the series' first."""
    assert told(past, "fix", "fix in 2.0") == [
        "2.0: fix in 2.0, first in 2.0.10",
        "3.0: fix, first in 3.0.0",
        "3.1 to 3.2: fix, in every release",
    ]


def test_branches_without_a_release_of_it_are_named_if_releases_are_made_from_them(
    past: Past,
) -> None:
    assert told(past, "tip", "tip in 1.4.3", "tip in renovate") == [
        "main: tip, in no release yet",
        "1.4.3: tip in 1.4.3, in no release yet",
    ]
    assert told(past, "fix", "fix in 2.0", "tip in 2.0") == told(past, "fix", "fix in 2.0")


def test_a_clone_names_a_branch_once_and_no_forks(past: Past, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(past.folder), "clone")
    fork = tmp_path / "clone"
    git(fork, "update-ref", f"refs/remotes/fork/{V}9.9", past["tip"])
    lines = names(fork).releases((past["tip"],))
    assert lines == (SeriesRelease(series="main", commit=past["tip"]),)


@pytest.mark.parametrize(
    ("commit", "name"),
    [
        ("before 3.1.0", "3.1.0"),  # an annotated tag
        ("fix in 2.0", "2.0.10"),  # a release rather than another tag
        ("fix", "3.0.0.rc1-1-g"),
        ("tip", "main"),
        ("tip in 2.0", "2.0"),
        ("tip in renovate", "3.0.0.rc1-2-g"),
    ],
)
def test_the_nearest_name(past: Past, commit: str, name: str) -> None:
    found = names(past.folder).nearest(past[commit])
    assert found == name or (name.endswith("-g") and found.startswith(name))


def test_without_any_tag_a_commit_is_its_hash(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("one")
    past.commit("two")
    assert names(past.folder).nearest(past["one"]) == past["one"][:12]
    assert names(past.folder).releases((past["one"],))[0].text.endswith("in no release yet")


def test_the_project_is_what_its_tags_begin_with(past: Past) -> None:
    assert names(past.folder).project == "389-ds-base"
    assert names(past.folder, SourceFacts(must_have=("a",))).project == "389-ds"
