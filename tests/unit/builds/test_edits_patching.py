"""Edits as one patch file: what git makes of it is what the edits meant."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from eras import ERAS, reader
from goldens import assert_golden
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbuilds.edits import patch_of
from dsbuilds.edits.dirsrv.schemes import RUST_SCHEMES, hashed_with, stored_under
from dsbuilds.edits.patch_file import unified
from dsharness.errors import EditError

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


@settings(max_examples=40, deadline=None)
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
