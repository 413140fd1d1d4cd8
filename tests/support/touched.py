"""As a program: the unit tests that import what was changed since the main branch."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("harness", "images", "builds", "results", "bisect")


def changed() -> list[Path]:
    """Files that differ from the main branch, committed or not."""
    begin = next(filter(None, (_git("merge-base", "HEAD", b) for b in ("origin/main", "main"))), [])
    differ = _git("diff", "--name-only", *(begin or ["HEAD"]))
    return [Path(name) for name in {*differ, *_git("ls-files", "--others", "--exclude-standard")}]


def touched(files: Iterable[Path], root: Path = ROOT) -> list[str]:
    """The unit tests that are among these files, or import one of them, also by way of support."""
    names = {name for path in files for name in _names(path, root)}
    support = {path.stem: _imports(path) for path in (root / "tests/support").glob("*.py")}
    while more := {name for name, known in support.items() if name not in names and known & names}:
        names |= more
    tests = (root / "tests/unit").rglob("test_*.py")
    return sorted(
        str(path.relative_to(root))
        for path in tests
        if path.relative_to(root) in files or _imports(path) & names
    )


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
