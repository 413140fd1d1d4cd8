"""Data flows one way, and the folders stay what they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = {  # in the order of the data
    "harness": "dsharness",
    "images": "dsimages",
    "builds": "dsbuilds",
    "results": "dsresults",
    "bisect": "dsbisect",
}


def lint_imports(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_imports_go_one_way() -> None:
    done = lint_imports()
    assert done.returncode == 0, done.stdout


def test_an_import_the_wrong_way_is_seen(tmp_path: Path) -> None:
    for package in LAYERS.values():
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "dsharness/wrong.py").write_text("import dsbisect\n")
    done = lint_imports(PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "dsharness.wrong -> dsbisect" in done.stdout


@pytest.mark.parametrize("folder", LAYERS)
def test_a_source_root_is_not_a_package(folder: str) -> None:
    # bisect/__init__.py would shadow the standard library's bisect, and break `import random`.
    assert not (ROOT / folder / "__init__.py").exists()


def test_the_standard_bisect_is_found_from_the_checkout() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import bisect, random; print(bisect.bisect_left([1, 3], 2))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "1\n"


@pytest.mark.parametrize(("folder", "package"), LAYERS.items())
def test_a_source_root_holds_one_package(folder: str, package: str) -> None:
    assert [init.parent.name for init in (ROOT / folder).glob("*/__init__.py")] == [package]


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils.py", "helpers.py", "common.py", "misc.py"}
    modules = [path for folder in LAYERS for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in modules if path.name in drawers] == []
