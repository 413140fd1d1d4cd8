"""Repositories of somebody else: any bytes as names of refs, as authors, dates and subjects."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from histories import MAIN_C, Past, git
from hypothesis import given
from hypothesis import strategies as st
from mutations import ODD, fuzzed, mutations

from dsbisect.survey.chosen_sources import Selection, chosen_of
from dsbuilds.history.culprit import story
from dsbuilds.history.lines import lines_between, server_keys
from dsbuilds.history.release_names import ReleaseNames
from dsbuilds.history.repository import Commit, Repository
from dsharness.errors import DsbisectError
from dsharness.plain_text import plain
from dsharness.products import product, source_facts

BOUND_S = 60.0  # of one repository: some dozen processes, on a busy machine
SEEN = "389-ds-base-2.0.1"
WORDS = (
    b"author ", b"committer ", b"encoding ISO-8859-1\n", b"parent ", b"tree ", b"gpgsig x\n",
    b"(cherry picked from commit 0123456789)\n", b"-99999999999999999999 +0000", b"<", b">",
)  # fmt: skip
# git takes any byte from 0x80 on, among them what other programs take for an end of line.
NAMES = (
    "a\u2028b",
    "a\u0085b",
    "a\u00a0b",
    "a\u3000b",
    "\u202e",
    "-x",
    "389-ds-base-\u0665.0",
    "@",
)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    made = Past.begin(tmp_path_factory.mktemp("odd") / "user")
    made.commit("one", {MAIN_C: "int main() { return 1; }\n"})
    made.tag(SEEN)
    made.commit("two", {MAIN_C: "int main() { return 2; }\n"})
    return made


def with_ref(folder: Path, name: bytes, commit: str) -> None:
    """Git refuses some names, which no repository has then."""
    subprocess.run([b"git", b"update-ref", name, commit], cwd=folder, check=False, timeout=60)


def with_commit(folder: Path, content: bytes) -> str:
    command = ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    done = subprocess.run(command, cwd=folder, input=content, capture_output=True, check=True)
    return done.stdout.decode().strip()


def look(repository: Repository, one: str, odd: str) -> list[Commit]:
    """All that is read of a repository before anything is built."""
    source = source_facts("389-ds")
    assert source is not None
    names = ReleaseNames(repository=repository, source=source, product=product("389-ds"))
    names.refs()
    names.nearest(one)
    names.releases((one,))
    assert SEEN in chosen_of(repository, Selection(words=("389-ds-base-*",))).commits
    commits = repository.commits("--no-walk=unsorted", one, repository.revision(odd))
    server_keys(repository, lines_between(repository, one, odd)[0].commits)
    story(names, odd)
    return list(commits)


@pytest.mark.few(2)
@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("place", ["heads", "tags", "remotes/origin"])
def test_names_of_refs_may_have_any_character_that_git_takes(
    past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, scheme: str
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    copy = past.copy(tmp_path / "user")
    for name in (*(each.encode() for each in NAMES), b"\xff", b"\xfe", b"\xc3(", b"a\xed\xa0\x80"):
        with_ref(copy.folder, b"refs/%s/%s" % (place.encode(), name), copy["two"])
    repository = Repository.open(f"{scheme}{copy.folder}")
    assert len(look(repository, copy["one"], copy["two"])) == 2
    assert repository.revision(SEEN) == copy["one"]
    assert repository.revision(f"{place}/a\u2028b") == copy["two"]


@fuzzed(4, 100)
@given(data=st.data())
def test_any_commit_is_read_or_is_one_clear_error(
    past: Past, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("history")
    copy = past.copy(folder / "user")
    raw = f"{git(copy.folder, 'cat-file', 'commit', copy['two'])}\n".encode()
    odd = with_commit(copy.folder, data.draw(mutations(raw, WORDS)))
    (copy.folder / ".git/refs/heads/odd").write_text(f"{odd}\n")
    name = data.draw(st.sampled_from(ODD) | st.binary(min_size=1, max_size=20))
    with_ref(copy.folder, b"refs/tags/389-ds-base-" + name.replace(b"\0", b""), copy["two"])
    begun = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSBISECT_CACHE", str(folder / "cache"))
        scheme = data.draw(st.sampled_from(["", "file://"]))
        with suppress(DsbisectError):
            for commit in look(Repository.open(f"{scheme}{copy.folder}"), copy["one"], odd):
                assert [plain(text) for text in (commit.author, commit.date, commit.subject)] == [
                    commit.author, commit.date, commit.subject,
                ]  # fmt: skip
    assert time.monotonic() - begun < BOUND_S
