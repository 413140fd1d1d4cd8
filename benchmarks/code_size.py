"""Measure the project: how much code, how many names and words, how heavy the program is.

One script for every commit, so that a table before and a table after a change of many parts say
the same. `make bench-code BENCH=--commit=REVISION` measures a revision of the repository, and
`--names` lists the names that do not say what they hold.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = ("bisect", "builds", "harness", "images", "results", "products")
PAGES = ("docs/*.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PACKAGES = re.compile(
    r"ds(harness|images|builds|results|search|lab|many|validate|products|bisect)(\.|$)"
)

# A question is spelled by every module of the folder of commands but these, which ask nothing of a
# server (they list, look at, keep or clean what is there, or show progress), and by the modules
# next to it whose name says options, a request, what is shared of one, or studies.
NO_QUESTION = """
__init__ build claims_progress clean doctor file_check image machines matrix_commands
matrix_lists results root search_progress search_steps show shown_output stored_answers
stored_pages stored_runs survey watch workload_commands
"""
SPELLS_A_QUESTION = re.compile(r"(^|_)(options?|request|shared|studies)(_|$)")

UNCLEAR_NAMES = """
all another any anything at both each either every everything it its neither none nothing one
ones other others ours same some something such that theirs them there these they this those
we what which who whole whom whose
asked been begun brought chosen come done drawn found given gone got heard held kept known left
made meant met paid put said seen sent shown taken taught thought told used wanted written
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", help="measure this revision, not the files that are here")
    parser.add_argument("--names", action="store_true", help="list the unclear names instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = unpacked(options.commit, Path(folder)) if options.commit else ROOT
        if options.names:
            for name, count in bindings(tree).most_common():
                if is_unclear(name):
                    print(f"{count:5} {name}")
        else:
            for measure, value in measures(tree):
                print(f"| {measure} | {value} |")


def unpacked(commit: str, folder: Path) -> Path:
    """The tree of this commit, written into the folder."""
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def measures(tree: Path) -> Iterator[tuple[str, str]]:
    texts = {path: path.read_text("utf-8") for path in modules(tree)}
    names = bindings(tree)
    unclear = sum(count for name, count in names.items() if is_unclear(name))
    templates = [path for root in SOURCE_ROOTS for path in (tree / root).rglob("*.jinja")]
    yield "product lines", f"{sum(map(lines, texts.values())):,}"
    yield "product modules", f"{len(texts)}"
    questions = [lines(text) for path, text in texts.items() if spells_question(path)]
    yield "question commands with their options: lines", f"{sum(questions):,}"
    yield "question commands with their options: modules", f"{len(questions)}"
    yield "modules loaded by `measure`", f"{len(loaded_modules(tree))}"
    yield (
        "templates with a head",
        f"{sum('<head' in path.read_text('utf-8') for path in templates)}",
    )
    yield "tables", f"{sum(map(tables, texts.values()))}"
    yield "migrations", f"{sum(is_migration(path) for path in texts)}"
    yield "bindings that are pronouns or participles", f"{unclear / names.total():.1%}"
    yield "`# fmt: skip`", f"{sum(text.count('# fmt: skip') for text in texts.values())}"
    pages = [path for place in PAGES for path in tree.glob(place)]
    yield "docs words", f"{sum(len(page.read_text('utf-8').split()) for page in pages):,}"
    yield "`dsbisect --help`, s of CPU", f"{help_seconds(tree):.2f}"


def modules(tree: Path) -> list[Path]:
    return sorted(path for root in SOURCE_ROOTS for path in (tree / root).rglob("*.py"))


def lines(text: str) -> int:
    """Return what `wc -l` says of this text."""
    return text.count("\n")


def spells_question(path: Path) -> bool:
    if "dsbisect" not in path.parts:
        return False
    in_commands = path.parent.name == "cli" and path.stem not in NO_QUESTION.split()
    return in_commands or SPELLS_A_QUESTION.search(path.stem) is not None


def tables(text: str) -> int:
    """Return how many tables of a database the module defines."""
    return len(re.findall(r"^\w+ = Table\(", text, re.MULTILINE)) if "sqlalchemy" in text else 0


def is_migration(path: Path) -> bool:
    return path.parent.name == "versions" and path.name != "__init__.py"


def bindings(tree: Path) -> Counter[str]:
    """Return every name that holds a value: variables, loops' targets, arguments, fields."""
    return Counter(name for path in modules(tree) for name in bound_names(path.read_text("utf-8")))


def bound_names(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if not name.startswith("__"):
                yield name
            case ast.arg(arg=name) if name not in {"self", "cls"}:
                yield name
            case ast.ExceptHandler(name=str(name)):
                yield name


def is_unclear(name: str) -> bool:
    return name.lower().strip("_") in UNCLEAR_NAMES.split()


LOADED = """
import ast, importlib, pathlib, sys
import dsbisect.program
command = importlib.import_module("dsbisect.cli.measure")
tree = ast.parse(pathlib.Path(command.__file__).read_text("utf-8"))
for node in ast.walk(tree):
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        node.body = []
for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom):
        importlib.import_module(node.module)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            importlib.import_module(alias.name)
print(*sys.modules)
"""


def loaded_modules(tree: Path) -> list[str]:
    """Return the modules of this project that are there before `measure` starts a container.

    They are what the command's module imports, at its top and inside its functions, with all
    that comes along.
    """
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], env=environment(tree), stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    return [name for name in loaded.split() if PACKAGES.match(name)]


def help_seconds(tree: Path, runs: int = 5) -> float:
    """Return the median CPU time of `dsbisect --help`: a busy machine makes a clock run long."""
    command = [sys.executable, "-c", "from dsbisect.program import main; main()", "--help"]
    seconds = []
    for _ in range(runs):
        before = os.times()
        subprocess.run(command, env=environment(tree), stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        seconds.append(sum(after[2:4]) - sum(before[2:4]))
    return statistics.median(seconds)


def environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / root) for root in SOURCE_ROOTS)}


if __name__ == "__main__":
    main()
