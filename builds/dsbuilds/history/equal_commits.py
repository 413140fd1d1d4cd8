"""Commits of a line that make the same server, by what differs from one to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from dsbuilds.git import Git
from dsbuilds.history.relevant_files import facts_of
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsharness.products import SourceFacts
from dsharness.products.product import SERVER

ABSENT = "000000"  # git's mode of a file that is not there
SPACE = 1 << 256


@dataclass(frozen=True, kw_only=True)
class CommitStep:
    """One file that differs between two neighbours; "MODE HASH" on each side, None: no file."""

    path: str
    before: str | None
    after: str | None


def steps_along(
    repository: Repository, commits: Sequence[str]
) -> dict[str, tuple[CommitStep, ...]]:
    """The steps to each commit but the first: what differs from the one before it on the line."""
    steps: dict[str, tuple[CommitStep, ...]] = dict.fromkeys(commits[1:], ())
    pairs = "".join(f"{after} {before}\n" for before, after in pairwise(commits))
    output = repository.git.must(
        "diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev",
        stdin=pairs, what=f"compare the commits of {repository.source}",
    )  # fmt: skip
    # COMMIT NUL (:MODE MODE HASH HASH STATUS NUL PATH NUL)*
    fields = iter(output.split("\0")[:-1])
    commit, found = "", list[CommitStep]()
    for field in fields:
        if field.startswith(":"):
            found.append(_step(field, next(fields)))
            steps[commit] = tuple(found)
        else:
            commit, found = field, []
    return steps


def differences(git: Git, one: str, other: str) -> dict[str, CommitStep]:
    """The files by which two trees differ, by path."""
    output = git.must(
        "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", one, other,
        what=f"compare {one[:12]} with {other[:12]}",
    )  # fmt: skip
    fields = iter(output.split("\0")[:-1])
    steps = (_step(facts, next(fields)) for facts in fields)
    return {step.path: step for step in steps}


def server_keys(
    repository: Repository, commits: Sequence[str], *, paths: Sequence[str] = ()
) -> dict[str, str]:
    """A key for each commit of a line: the same for all that make the same server.

    With ``paths`` only files there count: a commit that touches none of them cannot be a culprit,
    and gets the key of the one before it.
    """
    files = Tree(git=repository.git, id=commits[0], origin=repository.source).listing()
    counts = _counted(facts_of(files), tuple(path.strip("/") for path in paths))
    # A sum over files is the key of the whole, so that a step costs what it changes, not the tree.
    total = sum(_weight(path, _entry(what)) for path, what in files.items() if counts(path))
    keys = {commits[0]: _spelled(total)}
    for commit, steps in steps_along(repository, commits).items():
        total += sum(_change(step) for step in steps if counts(step.path))
        keys[commit] = _spelled(total)
    return keys


def _counted(facts: SourceFacts, paths: tuple[str, ...]) -> Callable[[str], bool]:
    def counts(path: str) -> bool:
        inside = not paths or any(path == each or path.startswith(f"{each}/") for each in paths)
        return inside and facts.kind_of(path) == SERVER

    return counts


def _step(facts: str, path: str) -> CommitStep:
    old_mode, new_mode, old, new, _ = facts.removeprefix(":").split(" ")
    return CommitStep(
        path=path,
        before=None if old_mode == ABSENT else f"{old_mode} {old}",
        after=None if new_mode == ABSENT else f"{new_mode} {new}",
    )


def _entry(listed: str) -> str:
    """`ls-tree`'s "MODE TYPE HASH" as `diff-tree` says it."""
    mode, _, digest = listed.split(" ")
    return f"{mode} {digest}"


def _change(step: CommitStep) -> int:
    gone = _weight(step.path, step.before) if step.before else 0
    come = _weight(step.path, step.after) if step.after else 0
    return come - gone


def _weight(path: str, entry: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{path}\0{entry}".encode()).digest(), "big")


def _spelled(total: int) -> str:
    return f"{total % SPACE:064x}"


@dataclass(frozen=True, kw_only=True)
class CommitGroup:
    """Neighbours on a line that make the same server."""

    commits: tuple[str, ...]

    @property
    def first(self) -> str:
        """The only one of them that may have changed the server."""
        return self.commits[0]


def collapse(line: Sequence[str], key_of: Callable[[str], str]) -> tuple[CommitGroup, ...]:
    """The line's groups, in its order; no commit is lost."""
    return tuple(CommitGroup(commits=tuple(group)) for _, group in groupby(line, key_of))
