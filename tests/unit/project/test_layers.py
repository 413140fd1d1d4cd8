"""Data flows one way, and the folders stay what they are."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dsharness.loads import LOADS
from dsharness.systems import SYSTEMS

ROOT = Path(__file__).resolve().parents[3]
LAYERS = {  # in the order of the data
    "harness": {"dsharness"},
    "images": {"dsimages"},
    "builds": {"dsbuilds"},
    "results": {"dsresults"},
    "bisect": {"dssearch", "dslab", "dsmany", "dsvalidate", "dsbisect"},
    "products": {"dsproducts"},
}


def lint_imports(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", *arguments],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def named_by(*keys: str) -> list[str]:
    """Every module that a contract of import-linter names under these keys."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return [name for rule in rules["contracts"] for key in keys for name in rule.get(key, ())]


def test_imports_go_one_way() -> None:
    done = lint_imports()
    assert done.returncode == 0, done.stdout


@pytest.mark.whole
def test_an_import_the_wrong_way_is_seen(tmp_path: Path) -> None:
    for name in named_by("layers"):
        package = tmp_path / name.replace(".", "/")
        package.mkdir(parents=True, exist_ok=True)
        for each in (package, *package.relative_to(tmp_path).parents):
            if (tmp_path / each) != tmp_path:
                (tmp_path / each / "__init__.py").touch()
    for allowed in ("program", "load_users"):
        (tmp_path / f"dsbisect/{allowed}.py").write_text("import dsproducts\n")
    (tmp_path / "dsharness/wrong.py").write_text("import dsbisect\n")
    done = lint_imports("--contract", "one-way", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "dsharness.wrong -> dsbisect" in done.stdout


@pytest.mark.parametrize(
    "driver", [*SYSTEMS.values(), *LOADS.values()], ids=lambda each: type(each).__name__
)
def test_no_module_may_import_a_driver(driver: object) -> None:
    module = f"{type(driver).__module__}."
    apart = [*named_by("protected_modules"), "dsproducts"]
    assert any(module.startswith(f"{name}.") for name in apart)


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


@pytest.mark.parametrize(("folder", "packages"), LAYERS.items())
def test_a_source_root_holds_these_packages(folder: str, packages: set[str]) -> None:
    assert {init.parent.name for init in (ROOT / folder).glob("*/__init__.py")} == packages


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils.py", "helpers.py", "common.py", "misc.py"}
    modules = [path for folder in LAYERS for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in modules if path.name in drawers] == []
