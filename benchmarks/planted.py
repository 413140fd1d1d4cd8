"""Changes planted in a real tree of 389-ds: each named by the load that shows it, by no other.

    make bench-planted REPO=~/389-ds-base                         all of planted.yaml
    make bench-planted REPO=~/389-ds-base BENCH="--only leak"     one of them

A bare repository in results/runs/planted gets a commit for each change, with a harmless one between
them, on top of a release of the clone; its commits are the same on every machine. `dsbisect bisect
commits --all` then asks the whole of it once for each change, with that one's workload and metric.
Run the same command again to resume. Prints a line for each and a table for docs/workloads.md; ends
with 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field
from ruamel.yaml import YAML

from benchmarks.upstream import ROOT, Bench, KnownSearch, Questions, ask
from dsbuilds.git import Git, git
from dsharness.errors import DsbisectError, SourceError, UsageError
from dsharness.model import Value

DATA = Path(__file__).with_suffix(".yaml")
RUNS = ROOT / "results" / "runs" / "planted"
TIP = "refs/heads/planted"
HARMLESS = "ldap/servers/slapd/util.c"
WHO = "dsbisect <dsbisect@localhost> 1767225600 +0000"


class PlantedEdit(Value):
    """Text that goes before or after the one line of a file that holds ``line``."""

    file: str
    line: str
    before: str = ""
    after: str = ""

    def applied(self, text: str) -> str:
        """The file with it."""
        lines = text.splitlines(keepends=True)
        numbers = [number for number, file_line in enumerate(lines) if self.line in file_line]
        if len(numbers) != 1:
            raise UsageError(
                f"{self.file} has {len(numbers)} lines with {self.line!r}, not one",
                hint="plant in the release that planted.yaml names, or correct the line there",
            )
        lines[numbers[0]] = self.before + lines[numbers[0]] + self.after
        return "".join(lines)


class PlantedChange(Value):
    """A change, and the load that shows it."""

    name: str
    title: str
    edits: tuple[PlantedEdit, ...] = Field(min_length=1)
    workload: str
    metric: str | None = Field(default=None, description="default: CPU time")


class PlantedHistory(Value):
    """A release, and what is planted on top of it."""

    base: str
    changes: tuple[PlantedChange, ...] = Field(min_length=1)

    @property
    def commits(self) -> Iterator[tuple[str, tuple[PlantedEdit, ...]]]:
        """Each with its title: harmless ones stand around the changes."""
        for number, change in enumerate(self.changes):
            yield f"Harmless {number}", (harmless(number),)
            yield change.title, change.edits
        yield "Harmless at the end", (harmless(len(self.changes)),)

    def searches(self, commits: dict[str, str]) -> Iterator[KnownSearch]:
        """One for each change; it must name that commit and none else."""
        for change in self.changes:
            yield KnownSearch(
                name=change.name,
                range=f"{self.base}..{TIP}",
                workload=change.workload,
                metric=change.metric,
                answer="slower",
                commit=commits[change.name],
            )


def harmless(number: int) -> PlantedEdit:
    """Code that nobody calls."""
    function = f"int harmless_{number}(void)"
    text = f"{function};\n{function} {{ return {number}; }}\n"
    return PlantedEdit(file=HARMLESS, line='#include "slap.h"', after=text)


def plant(history: PlantedHistory, clone: str, folder: Path) -> dict[str, str]:
    """Make the repository; the commit of each change by its name."""
    if not folder.exists():
        result = git("clone", "--quiet", "--bare", "--shared", "--", clone, str(folder), users=True)
        if not result.ok:
            raise SourceError(f"{clone} could not be cloned", hint="name a clone of 389-ds-base")
    repository = Git(folder=folder)
    base = _told(repository, "rev-parse", "--verify", f"{history.base}^{{commit}}").strip()
    stream = "".join(_stream(history, base, repository))
    repository.must("fast-import", "--quiet", "--force", what="plant changes", stdin=stream)
    planted = _told(repository, "rev-list", "--reverse", f"{base}..{TIP}").split()[1::2]
    return {change.name: commit for change, commit in zip(history.changes, planted, strict=True)}


def _stream(history: PlantedHistory, base: str, repository: Git) -> Iterator[str]:
    """What ``git fast-import`` reads."""
    files: dict[str, str] = {}
    yield f"reset {TIP}\nfrom {base}\n\n"
    for title, edits in history.commits:
        for edit in edits:
            if edit.file not in files:
                files[edit.file] = _told(repository, "show", f"{base}:{edit.file}")
            files[edit.file] = edit.applied(files[edit.file])
        yield f"commit {TIP}\ncommitter {WHO}\n{_data(title)}"
        for name in sorted({edit.file for edit in edits}):
            yield f"M 100644 inline {name}\n{_data(files[name])}"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _told(repository: Git, *words: str) -> str:
    return repository.must(*words, what="plant changes")


def read_history(path: Path) -> PlantedHistory:
    return PlantedHistory.model_validate_json(json.dumps(YAML(typ="safe").load(path)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", metavar="REPO", help="a clone of 389-ds-base")
    parser.add_argument("--only", action="append", metavar="NAME", help="this one; repeatable")
    options = parser.parse_args()
    if not options.repository:
        parser.error("no repository: make bench-planted REPO=PATH")
    history = read_history(DATA)
    folder = RUNS / "history.git"
    try:
        commits = plant(history, options.repository, folder)
    except DsbisectError as error:
        parser.error(str(error))
    questions = Questions(searches=tuple(history.searches(commits)))
    names = options.only or questions.names
    unknown = [name for name in names if name not in questions.names]
    if unknown:
        parser.error(f"no {', '.join(unknown)}; there are: {', '.join(questions.names)}")
    bench = Bench(
        command="make bench-planted",
        repository=str(folder),
        folder=RUNS,
        store=RUNS / "dsbisect.db",
        options=("--all", "--no-proof"),
    )
    return ask(bench, questions, names)


if __name__ == "__main__":
    sys.exit(main())
