"""As a program: the unit tests of what was changed on this branch, the nearest first.

All that import what was changed, by whatever way, where BUDGET_S holds them; of more, the nearest.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("harness", "images", "builds", "results", "bisect", "products")
TESTS = "tests/unit"
RECORD = "tests/unit/durations.json"  # `make unit-times` writes it
BUDGET_S = 8.0  # of CPU time: with rules and types, `make quick` stays under 20 seconds
UNKNOWN_S = 1.0  # of a file that nobody has timed


@dataclass(frozen=True, kw_only=True)
class Touched:
    """The files to run, and those that the budget does not hold, each with its seconds."""

    chosen: Mapping[str, float]
    left: Mapping[str, float]

    def __str__(self) -> str:
        said = f"{len(self.chosen)} test files, {sum(self.chosen.values()):.0f} s of CPU time"
        if not self.left:
            return said
        far = f"{len(self.left)} further away are left to `make unit`"
        return f"{said}; {far}: {sum(self.left.values()):.0f} s"


def changed() -> tuple[list[Path], list[Path]]:
    """Files that differ from the last commit, and those that its branch changed before.

    Of the branches that it may be from, the one it left last.
    """
    names = ("@{upstream}", "origin/HEAD", "origin/main", "main")
    begins = [base[0] for name in names if (base := _git("merge-base", "HEAD", name))]
    now = {*_git("diff", "--name-only", "HEAD")}
    now |= {*_git("ls-files", "--others", "--exclude-standard")}
    before = min(
        (_git("diff", "--name-only", base, "HEAD") for base in begins), key=len, default=[]
    )
    return sorted(map(Path, now)), sorted(map(Path, {*before} - now))


def touched(
    files: Iterable[Path], before: Iterable[Path] = (), *, root: Path = ROOT,
    budget_s: float = BUDGET_S,
) -> Touched:  # fmt: skip
    """First for these files, then for those that were changed before.

    Changed tests are the nearest. The first one is among them however long it takes.
    """
    files = [root / file for file in files]
    took = json.loads((root / RECORD).read_text(encoding="utf-8"))
    found = dict.fromkeys([*nearest(files, root), *nearest([root / b for b in before], root)])
    chosen: dict[str, float] = {}
    left: dict[str, float] = {}
    for path in found:
        name = str(path.relative_to(root))
        cost = took.get(str(path.relative_to(root / TESTS)), UNKNOWN_S)
        fits = not chosen or sum(chosen.values()) + cost <= budget_s
        (chosen if fits else left)[name] = cost
    return Touched(chosen=chosen, left=left)


def nearest(files: Sequence[Path], root: Path = ROOT) -> list[Path]:
    """Every unit test that needs one of these files, by the number of imports between them.

    Of those that are equally near: first what names it, or for what is no code the tests of the
    whole project, then what imports least, being about it.
    """
    needed_by = _needed_by(root)
    found: dict[Path, tuple[int, bool, int]] = {}
    for file in files:
        if file.is_relative_to(root / "tests/integration"):
            continue
        steps_to = _steps({file}, needed_by)
        if not any(map(_is_test, steps_to)):
            steps_to = _steps(_readers(file, root), needed_by)
        for path, steps in steps_to.items():
            if _is_test(path) and path in _graph(root):  # it may have been removed
                named = (
                    file.stem in _said(path) or file.stem in path.stem
                    if file.suffix == ".py"
                    else path.parent.name == "project"
                )
                place = (steps, not named, len(_graph(root)[path]))
                found[path] = min(place, found.get(path, place))
    return sorted(found, key=lambda path: (found[path], path))


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")  # the graph holds no others than unit tests


def _steps(begin: AbstractSet[Path], needed_by: Mapping[Path, set[Path]]) -> dict[Path, int]:
    """How many imports each file is away from these."""
    found = dict.fromkeys(begin, 0)
    edge = list(begin)
    while edge:
        near = {path: found[known] + 1 for known in edge for path in needed_by.get(known, ())}
        edge = [path for path in near if path not in found]
        found = {**near, **found}
    return found


def _readers(file: Path, root: Path) -> set[Path]:
    """What names a file that nothing imports, or else the closest folder that is named."""
    pages = {"*.md"} if file.suffix == ".md" else set()
    folders = [{folder.name} for folder in file.relative_to(root).parents if folder.name]
    for names in ({file.name} | pages, *folders):
        if found := {path for path in _graph(root) if names & _said(path)}:
            return found
    return set()


@functools.cache
def _needed_by(root: Path) -> Mapping[Path, set[Path]]:
    found: dict[Path, set[Path]] = {}
    for path, needs in _graph(root).items():
        for need in needs:
            found.setdefault(need, set()).add(path)
    return found


@functools.cache
def _graph(root: Path) -> Mapping[Path, set[Path]]:
    """What each Python file needs of the others."""
    paths = [
        path
        for folder in (*SOURCES, "benchmarks", "tests/support", TESTS)
        for path in sorted((root / folder).rglob("*.py"))
    ]
    modules = {_name(path, root): path for path in paths}
    doors = {
        f"{name}.{member}": modules[source]
        for name, path in modules.items()
        if path.name == "__init__.py"
        for source, member in _imports(path)
        if source in modules
    }
    return {path: set(_needed(path, _name(path, root), modules, doors)) - {path} for path in paths}


def _needed(
    path: Path, name: str, modules: Mapping[str, Path], doors: Mapping[str, Path]
) -> Iterator[Path]:
    """Of a package that only passes a name on, the module that the name is from."""
    if path.name == "__init__.py":
        return
    for source, member in _imports(path):
        full = f"{source}.{member}"
        yield from (known[full] for known in (doors, modules) if full in known)
        if source in modules:
            yield modules[source]
        if not member:  # all of a package
            yield from (there for each, there in doors.items() if each.startswith(f"{source}."))
    package = name.rpartition(".")[0]
    for place in _places(path):  # imported by its name when it is needed
        yield from filter(None, (modules.get(f"{package}.{place}"),))


def _name(path: Path, root: Path) -> str:
    """What a file is imported as."""
    parts = path.relative_to(root).with_suffix("").parts
    if parts[0] == "tests":
        return path.stem
    inside = parts[1:] if parts[0] in SOURCES else parts
    return ".".join(inside[:-1] if inside[-1] == "__init__" else inside)


def _imports(path: Path) -> Iterator[tuple[str, str]]:
    """Modules with what is taken from them: nothing where it is the module itself."""
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def _places(path: Path) -> Iterator[str]:
    for text in _texts(path):
        if found := re.fullmatch(r"(\w+):\w+", text):
            yield found[1]


@functools.cache
def _said(path: Path) -> frozenset[str]:
    """The parts of each text that may be a path."""
    return frozenset(part for text in _texts(path) if " " not in text for part in text.split("/"))


def _texts(path: Path) -> Iterator[str]:
    for node in _nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@functools.cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """Not by `ast.walk`, which takes twice as long."""
    found: list[ast.AST] = []
    rest: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Constant):
            found.append(node)
            continue
        for value in vars(node).values():
            if isinstance(value, list):
                rest += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                rest.append(value)
    return tuple(found)


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


if __name__ == "__main__":
    found = touched(*changed())
    if found.chosen:
        sys.stderr.write(f"{found}\n")
    sys.stdout.write("".join(f"{name}\n" for name in found.chosen))
