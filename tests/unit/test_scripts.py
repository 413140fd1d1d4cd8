"""The project's own scripts are clean shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("scripts", ".ci", "images/dsimages/libexec", "tests/integration/freeipa")
SCRIPTS = sorted(
    str(path.relative_to(ROOT))
    for folder in FOLDERS
    for path in (ROOT / folder).iterdir()
    if path.is_file() and path.read_bytes().splitlines()[0].endswith((b"/sh", b"bash"))
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scripts_are_clean_shell(script: str) -> None:
    done = subprocess.run(
        ["shellcheck", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
