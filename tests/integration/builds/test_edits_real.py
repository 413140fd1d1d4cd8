"""Every edit on the real sources of Debian's four 389-ds packages."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from debian_sources import DEBIAN_ROWS, debian_source

from dsbuilds.edits import Files, patch_of
from dsbuilds.edits.patch_file import unified
from dsharness.errors import EditError
from dsharness.model import Promise
from dsproducts.dirsrv.edits.scheme_edits import RUST_SCHEMES, hashed_with, stored_under

REVERTED, RUST_DEFAULT = "default-scheme=PBKDF2_SHA256", "default-scheme=PBKDF2-SHA512"
ALREADY = "already the default"


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Words of a refusal."""

    words: str


# What Debian ships: 1.4.4 and 2.3 before the rounds could be configured, 3.1 and 3.3 after.
CASES: dict[str, dict[str, Promise | Refused]] = {
    "debian-11": {
        REVERTED: Refused(words=ALREADY),
        "default-scheme=SSHA512": stored_under("SSHA512"),
        "c-rounds=4096": hashed_with(("PBKDF2_SHA256",), 4096),
    },
    "debian-12": {
        REVERTED: stored_under("PBKDF2_SHA256"),
        RUST_DEFAULT: Refused(words=ALREADY),
        "rust-rounds=10000": Refused(words=ALREADY),
        "rust-rounds=100_000": hashed_with(RUST_SCHEMES, 100_000),
        "c-rounds=100": hashed_with(("PBKDF2_SHA256",), 100),
    },
    "debian-13": {
        REVERTED: stored_under("PBKDF2_SHA256"),
        RUST_DEFAULT: Refused(words=ALREADY),
        "default-scheme=CRYPT-SHA512": stored_under("CRYPT"),
        "default-scheme=PBKDF2_SHA512": Refused(words="Perhaps you meant"),
        "rust-rounds=100000": Refused(words=ALREADY),
        "rust-rounds=500": hashed_with(RUST_SCHEMES, 500),
        "c-rounds=100": hashed_with(("PBKDF2_SHA256",), 100),
    },
    "debian-sid": {
        REVERTED: stored_under("PBKDF2_SHA256"),
        RUST_DEFAULT: Refused(words=ALREADY),
        "rust-rounds=100000": Refused(words=ALREADY),
        "rust-rounds=500": hashed_with(RUST_SCHEMES, 500),
        "rust-rounds=10000000": Refused(words="AcceptMaxIterations"),
        "c-rounds=100": hashed_with(("PBKDF2_SHA256",), 100),
        "c-rounds=60000": hashed_with(("PBKDF2_SHA256",), 60_000),
    },
}


def reader(tree: Path) -> Files:
    def read(path: str) -> str | None:
        file = tree / path
        return file.read_bytes().decode() if file.is_file() else None

    return read


def git_takes(tree: Path, patch: str) -> None:
    done = subprocess.run(
        ["git", "apply", "--check", "-"], cwd=tree, input=patch.encode(), capture_output=True,
        check=False, env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": "/"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.whole
@pytest.mark.parametrize("row_id", DEBIAN_ROWS)
def test_every_edit_fits_or_says_why_not(row_id: str) -> None:
    tree = debian_source(row_id)
    files = reader(tree)
    for text, meant in CASES[row_id].items():
        if isinstance(meant, Refused):
            with pytest.raises(EditError) as caught:
                patch_of([text], files)
            assert meant.words in str(caught.value), text
        else:
            patch = patch_of([text], files)
            assert patch.promise == meant
            git_takes(tree, patch.text)


@pytest.mark.whole
@pytest.mark.parametrize("row_id", DEBIAN_ROWS)
def test_all_edits_at_once_are_one_patch_that_changes_little(row_id: str) -> None:
    tree = debian_source(row_id)
    fitting = [text for text, meant in CASES[row_id].items() if isinstance(meant, Promise)]
    patch = patch_of(fitting, reader(tree))
    git_takes(tree, patch.text)
    changed = [
        line for line in patch.text.splitlines()
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))
    ]  # fmt: skip
    assert len(changed) < 40


@pytest.mark.whole
def test_a_real_file_of_every_kind_is_its_own_difference() -> None:
    """Form feeds, lone carriage returns and missing last newlines in sources as they are."""
    tree = debian_source("debian-sid")
    files = reader(tree)
    for path in ("ldap/servers/slapd/pw.c", "ldap/ldif/template-dse.ldif.in", "configure.ac"):
        text = files(path)
        assert text is not None
        git_takes(tree, unified({path: text}, {path: f"{text}x"}))
        git_takes(tree, unified({path: text}, {path: text.removesuffix("\n")[:-1]}))
