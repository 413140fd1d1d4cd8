"""The functions that each commit of a line changes, by the heads that git and its patches name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from pathlib import Path

from dsbuilds.history.repository import Repository

LANGUAGES = Path(__file__).with_name("languages.gitattributes")
# The name before the first bracket of a head; a word of a language is no name.
NAME = re.compile(r"\b(?!(?:if|for|while|switch|return|sizeof|func|fn|def)\b)([A-Za-z_]\w*)\s*[(<]")
HUNK = re.compile(r"@@ -[0-9,]+ \+[0-9,]+ @@ ?(?P<head>.*)")
# A line that begins a function: at the left edge, or with a word for it.
BEGINS = re.compile(r"[-+](?:[A-Za-z_][\w \t*]*\(|\s*(?:[\w()]+\s+)*(?:fn|func|def)\s+\w)")
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
FILE = "diff --git a/"  # and, after a space, the same path with b/
MOST_LETTERS = 400  # of a line that is looked at
AT_ONCE = 50  # commits: a program's output has a limit


def functions_along(
    repository: Repository, commits: Sequence[str], counts: Callable[[str], bool]
) -> dict[str, frozenset[str]]:
    """Return by commit, but for the first, what it changes in files that count.

    Of commits whose patches are too long to be read it is nothing.
    """
    functions: dict[str, set[str]] = {commit: set() for commit in commits[1:]}
    names, counted = set[str](), False
    pairs = [f"{after} {before}\n" for before, after in pairwise(commits)]
    batches = ("".join(pairs[first : first + AT_ONCE]) for first in range(0, len(pairs), AT_ONCE))
    for line in chain.from_iterable(_patches(repository, batch) for batch in batches):
        if COMMIT.fullmatch(line):
            names = functions.setdefault(line, set())
        elif line.startswith(FILE):
            counted = counts(line.removeprefix(FILE)[: (len(line) - len(FILE) - 3) // 2])
        elif counted and (match := NAME.search(_head(line[:MOST_LETTERS]))):
            names.add(match[1])
    return {commit: frozenset(changed) for commit, changed in functions.items()}


def _patches(repository: Repository, pairs: str) -> list[str]:
    """Return the lines of the patches between these commits."""
    done = repository.git.call(
        "-c",
        f"core.attributesFile={LANGUAGES}",
        "diff-tree",
        "--stdin",
        "-r",
        "-p",
        "-U0",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        stdin=pairs,
    )
    return done.stdout.split("\n") if done.ok else []


def _head(line: str) -> str:
    """Return the head of a function that a line of a patch has."""
    if hunk := HUNK.match(line):
        return hunk["head"]
    return line[1:] if BEGINS.match(line) else ""
