"""A user's patch file is looked at before anything is done with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbuilds.edits import user_patch
from dsharness.errors import EditError
from dsharness.model import Promise

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
    with pytest.raises(EditError) as caught:
        user_patch(written(tmp_path, data))
    assert words in str(caught.value)
    assert "mine.patch" in str(caught.value)


@pytest.mark.parametrize("name", ["missing.patch", "."])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(EditError, match="cannot be read"):
        user_patch(tmp_path / name)
