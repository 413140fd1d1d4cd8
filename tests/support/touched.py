"""As a program: the unit tests that are nearest to what was changed since the main branch."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("harness", "images", "builds", "results", "bisect")
MOST = 12  # tests for one changed file: `make unit` runs all


def changed() -> list[Path]:
    """Files that differ from the main branch, committed or not."""
    begin = next(filter(None, (_git("merge-base", "HEAD", b) for b in ("origin/main", "main"))), [])
    differ = _git("diff", "--name-only", *(begin or ["HEAD"]))
    return [Path(name) for name in {*differ, *_git("ls-files", "--others", "--exclude-standard")}]


def touched(files: Iterable[Path], root: Path = ROOT) -> list[str]:
    """The unit tests that are among these files, or are nearest to one of them.

    Nearest are those that import it, also by way of support; where none does, those that import
    what imports it, and so on. Of many, the ones that import least: they are about it.
    """
    files = tuple(files)
    tests = {path: _imports(path) for path in (root / "tests/unit").rglob("test_*.py")}
    found = {path for path in tests if path.relative_to(root) in files}
    for file in files:
        near = sorted(_nearest(file, tests, root), key=lambda path: (len(tests[path]), path))
        found.update(near[:MOST])
    return sorted(str(path.relative_to(root)) for path in found)


def _nearest(file: Path, tests: Mapping[Path, set[str]], root: Path) -> set[Path]:
    names, importers = set(_names(file, root)), _modules(root)
    while names:
        near = {path for path, known in tests.items() if known & names}
        if near:
            return near
        wider = names | {name for name, known in importers.items() if known & names}
        if wider == names:
            return _of_package(max(names), tests)
        names = wider
    return set()


def _of_package(name: str, tests: Mapping[Path, set[str]]) -> set[Path]:
    """Tests of its package, or the one around it: commands and scripts are loaded by their name."""
    while name := name.rpartition(".")[0]:
        near = {
            path for path, known in tests.items()
            if any(f"{each}.".startswith(f"{name}.") for each in known)
        }  # fmt: skip
        if near:
            return near
    return set()


@functools.cache
def _modules(root: Path) -> Mapping[str, set[str]]:
    """What each module of the product and of the tests' support imports."""
    found = {path.stem: _imports(path) for path in (root / "tests/support").glob("*.py")}
    for source in SOURCES:
        for path in (root / source).rglob("*.py"):
            for name in _names(path.relative_to(root), root):
                found[name] = found.get(name, set()) | _imports(path)
    return found


def _names(path: Path, root: Path) -> Iterator[str]:
    """What a changed file is imported as; a template or script counts as its package."""
    if path.parts[:2] == ("tests", "support"):
        yield path.stem
    if path.parts[0] not in SOURCES or len(path.parts) < 3:
        return
    inside = path.parts[1:]
    if path.suffix != ".py":
        yield ".".join(inside[:-2]) or inside[0]
        return
    package = ".".join(inside[:-1])
    yield package if path.name == "__init__.py" else f"{package}.{path.stem}"
    door = root / path.parent / "__init__.py"
    if door.is_file() and f"{package}.{path.stem}" in _imports(door):
        yield package


@functools.cache
def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


if __name__ == "__main__":
    sys.stdout.write("\n".join(touched(changed())) + "\n")
