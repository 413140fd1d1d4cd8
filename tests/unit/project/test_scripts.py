"""The project's own scripts are clean shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (
    "scripts",
    ".ci",
    "builds/dsbuilds/libexec",
    "products/dsproducts/dirsrv",
    "images/dsimages/libexec",
    "bisect/dsvalidate/libexec",
    "tests/integration/harness/freeipa",
    "examples/tmt",
)
SCRIPTS = sorted(
    str(path.relative_to(ROOT))
    for folder in FOLDERS
    for path in (ROOT / folder).iterdir()
    if path.is_file() and path.read_bytes().splitlines()[0].endswith((b"/sh", b"bash"))
)
# What is meant, although shellcheck asks. It stands here and not in the scripts, because a build is
# named by its script's text: a comment there would make every build again.
MEANT = {
    # make's own $(…), a list of users, and names that libtool chose
    "products/dsproducts/dirsrv/build-tree": "SC2016,SC2086,SC2044",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("meant", sorted({"", *MEANT.values()}))
def test_the_scripts_are_clean_shell(meant: str) -> None:
    scripts = [script for script in SCRIPTS if MEANT.get(script, "") == meant]
    assert scripts
    done = subprocess.run(
        ["shellcheck", f"--exclude={meant}", *scripts],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
