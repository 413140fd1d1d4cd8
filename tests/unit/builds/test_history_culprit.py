"""Everything that is shown of a commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import MAIN_C, Past

from dsbuilds.history.culprit import link, story
from dsbuilds.history.release_names import ReleaseNames
from dsbuilds.history.repository import Repository
from dsharness.products import product, source_facts

SOURCE = source_facts("389-ds")

HASH = "c" * 40


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://github.com/389ds/389-ds-base.git", "github.com/389ds/389-ds-base/commit"),
        ("https://github.com/389ds/389-ds-base/", "github.com/389ds/389-ds-base/commit"),
        ("git@github.com:389ds/389-ds-base.git", "github.com/389ds/389-ds-base/commit"),
        ("ssh://git@github.com:22/389ds/389-ds-base", "github.com/389ds/389-ds-base/commit"),
        ("https://me:secret@github.com/a/b", "github.com/a/b/commit"),
        ("git://github.com/a/b", "github.com/a/b/commit"),
        ("https://gitlab.com/redhat/389-ds", "gitlab.com/redhat/389-ds/-/commit"),
        ("git@gitlab.example.org:a/b/c.git", "gitlab.example.org/a/b/c/-/commit"),
        ("https://pagure.io/389-ds-base.git", "pagure.io/389-ds-base/c"),
        ("ssh://git@pagure.io/389-ds-base.git", "pagure.io/389-ds-base/c"),
        ("https://example.org/389-ds-base.git", None),
        ("https://example.org/github.com/a/b", None),
        ("/srv/git/389-ds-base", None),
        ("", None),
    ],
)
def test_the_page_of_a_commit(remote: str, page: str | None) -> None:
    assert link((remote,), HASH, {}) == (f"https://{page}/{HASH}" if page else None)


def test_the_first_known_host_is_taken() -> None:
    remotes = ("/srv/git/mirror", "https://github.com/a/b", "https://gitlab.com/c/d")
    assert link(remotes, HASH, {}) == f"https://github.com/a/b/commit/{HASH}"
    assert link((), HASH, {}) is None


def test_the_story_of_a_culprit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    past = Past.begin(tmp_path / "user")
    past.git("remote", "add", "origin", "https://github.com/389ds/389-ds-base.git")
    past.tag("389-ds-base-2.0.0")
    past.tag("389-ds-base-3.0.0")
    past.commit("slow", {
        MAIN_C: "slow\n", "dirsrvtests/tests/a.py": "a\n", "ldap/ldif/a.ldif": "a\n",
    })  # fmt: skip
    past.tag("389-ds-base-3.0.1")
    past.switch("389-ds-base-2.0", "begin")
    past.commit("else")
    past.pick("slow too", "slow", says=True)
    past.tag("389-ds-base-2.0.17")
    names = ReleaseNames(
        repository=Repository.open(str(past.folder)), source=SOURCE, product=product("389-ds")
    )
    told = story(names, past["slow"])
    assert told.model_dump(mode="json") == {
        "hash": past["slow"],
        "author": "A. Author <author@example.org>",
        "date": "2023-11-14T22:15:20+00:00",
        "subject": "slow",
        "files": [MAIN_C, "ldap/ldif/a.ldif", "dirsrvtests/tests/a.py"],
        "unread": 1,
        "kinds": ["server", "tests"],
        "merge": False,
        "link": f"https://github.com/389ds/389-ds-base/commit/{past['slow']}",
        "equivalents": [past["slow too"]],
        "releases": [
            {"series": "2.0", "until": "", "commit": past["slow too"], "first": "2.0.17"},
            {"series": "3.0", "until": "", "commit": past["slow"], "first": "3.0.1"},
        ],
    }
    assert told.counting == (MAIN_C, "ldap/ldif/a.ldif")
    assert told.elsewhere == ()
