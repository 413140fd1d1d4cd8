"""Edits as one patch file: what git makes of it is what the edits meant.

A user's patch file is looked at before anything is done with it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from eras import ERAS, reader
from goldens import assert_golden
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbuilds.edits import patch_of, user_patch
from dsbuilds.edits.patch_file import unified
from dsharness.errors import EditError, UsageError
from dsharness.model import Promise
from dsproducts.dirsrv.edits.scheme_edits import RUST_SCHEMES, hashed_with, stored_under

HUNK = "@@ -3,3 +3,3 @@ main\n one\n-two\n+TWO\n three\n"
PLAIN = f"--- a/src/x.c\t2026-01-01\n+++ b/src/x.c\t2026-01-02\n{HUNK}"
GIT = f"From: somebody\n\ndiff --git a/src/x.c b/src/x.c\nindex 1..2 100644\n{PLAIN}"
SECOND = "@@ -40 +40,2 @@\n-a\n+b\n+c\n"
NEW = "--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
GONE = "--- a/old.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"


def written(folder: Path, data: str | bytes) -> Path:
    path = folder / "mine.patch"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        GIT,
        PLAIN + SECOND,
        NEW,
        GONE,
        NEW + GONE + PLAIN,
        GIT + "-- \n2.39.5\n",
        # An empty line of context that lost its blank, and removed lines that look like headers.
        "--- a/f\n+++ b/f\n@@ -1,3 +1,2 @@\n a\n\n--- b\n",
        # A file whose own lines end with carriage returns.
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+b\r\n",
        PLAIN.rstrip("\n"),
    ],
)
def test_a_patch_is_taken(tmp_path: Path, text: str) -> None:
    patch = user_patch(written(tmp_path, text))
    assert patch.text.rstrip("\n") == text.rstrip("\n")
    assert patch.text.endswith("\n")
    assert patch.name == "mine.patch"
    assert patch.promise == Promise()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("just words\n", "no hunk"),
        ("--- a/x\n+++ b/x\n", "no hunk"),
        (HUNK, "names no file"),
        (PLAIN.replace("\n", "\r\n"), "carriage returns"),
        (b"PK\0\1", "binary file"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 1\n", "binary files"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary files"),
        (PLAIN.replace("a/src", "/src"), "absolute"),
        (PLAIN.replace("b/src", "b//src"), "absolute"),
        (PLAIN.replace("a/src", "a/../.."), "leads out"),
        (GIT.replace("diff --git a/src", "diff --git a/../src"), "leads out"),
        (f"diff --git a/x b/y\nrename from x\nrename to ../y\n{PLAIN}", "leads out"),
        (PLAIN.replace("a/src/", "").replace("b/src/", ""), "not made for -p1"),
        ("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n one\n", "line 4: a hunk is not whole"),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\nelse\n", "is not whole"),
        (PLAIN.encode().replace(b"TWO", b"\xff"), "line 6: it is not UTF-8"),
    ],
)
def test_what_is_no_patch_is_refused(tmp_path: Path, data: str | bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        user_patch(written(tmp_path, data))
    assert words in str(caught.value)
    assert caught.value.hint
    assert "mine.patch" in str(caught.value)


@pytest.mark.parametrize("name", ["missing.patch", "."])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: .*\n  next: name a patch file"):
        user_patch(tmp_path / name)


ALL = ["default-scheme=PBKDF2_SHA256", "rust-rounds=5", "c-rounds=100"]


def git_applied(folder: Path, tree: Mapping[str, str], patch: str) -> dict[str, str]:
    """The tree's files as git leaves them, bytes untouched."""
    for path, text in tree.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    subprocess.run(
        ["git", "apply", "-p1", "--whitespace=nowarn", "-"], cwd=folder, check=True,
        input=patch.encode(), env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": "/"},
    )  # fmt: skip
    return {path: (folder / path).read_bytes().decode() for path in tree}


@pytest.mark.parametrize("era", ["2.2.3", "3.1.2", "3.3.1"])
def test_all_edits_make_one_patch(era: str) -> None:
    patch = patch_of(ALL, reader(ERAS[era]))
    assert patch.promise == stored_under("PBKDF2_SHA256").then(
        hashed_with(RUST_SCHEMES, 5).then(hashed_with(("PBKDF2_SHA256",), 100))
    )
    assert patch.name == "+".join(ALL)
    assert patch.sha256 == patch_of(ALL, reader(ERAS[era])).sha256
    assert_golden(f"edits/{era}.patch", patch.text)


@pytest.mark.parametrize("era", ["2.0.17", "2.2.3", "3.1.2", "between", "3.3.1"])
def test_git_applies_exactly_what_was_meant(era: str, tmp_path: Path) -> None:
    tree = dict(ERAS[era])
    patch = patch_of(ALL, reader(tree))
    meant = dict(tree)
    for text in ALL:
        one = patch_of([text], reader(meant))
        (folder := tmp_path / text).mkdir()
        meant = git_applied(folder, meant, one.text)
    assert git_applied(tmp_path / "all", tree, patch.text) == meant


def test_a_later_edit_starts_from_the_earlier() -> None:
    tree = ERAS["3.1.2"]
    both = patch_of(["rust-rounds=5", "rust-rounds=70"], reader(tree))
    assert both.promise == hashed_with(RUST_SCHEMES, 70)
    assert "+const DEFAULT_PBKDF2_ROUNDS: usize = 70;" in both.text
    assert "DEFAULT_PBKDF2_ROUNDS: usize = 5;" not in both.text


def test_edits_that_undo_each_other_are_no_patch() -> None:
    with pytest.raises(EditError, match="change nothing in the source"):
        patch_of(["rust-rounds=20000", "rust-rounds=100000"], reader(ERAS["3.1.2"]))


TEXT = st.text(st.sampled_from("ab\n\f\x1c\u2028é -+@\\"), max_size=40)


@settings(max_examples=2 * settings.default.max_examples)
@given(TEXT.filter(bool), TEXT.filter(bool))
def test_the_diff_of_any_two_texts_is_theirs(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    diff = unified({"a/file": before}, {"a/file": after})
    if before == after:
        assert diff == ""
        return
    folder = tmp_path_factory.mktemp("diff")
    assert git_applied(folder, {"a/file": before}, diff) == {"a/file": after}
