r"""Lines of commits that can be searched: along first parents, then through merges.

     s1 - s2                 [good, a, M, b]   the first-parent line
    /       \
good - a --- M - b           [a, s1, s2, M]    if M turned slow: the line through its side branch

Every commit between good and bad is inside exactly one of these lines. Where neither leads to the
other, as with tags of two branches, there are two such lines from where they have parted:

       b1 - bad            [base, b1, bad] and [base, g1, good]
      /
... base - g1 - good

Commits of a line that make the same server are found by what differs from one to the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from dsbuilds.git import Git
from dsbuilds.history.relevant_files import facts_of
from dsbuilds.history.repository import UNSHALLOW, Repository
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import SourceError
from dsharness.products import SourceFacts
from dsharness.products.product import SERVER


@dataclass(frozen=True, kw_only=True)
class Line:
    """Commits in an order one can search along, oldest first, both ends included."""

    commits: tuple[str, ...]
    notes: tuple[str, ...] = ()
    known: tuple[
        str, ...
    ] = ()  # what these reach lies outside; ``side_lines`` continues from there


def lines_between(repository: Repository, good: str, bad: str) -> tuple[Line, ...]:
    """Return the first-parent line from good to bad, both full hashes.

    Two where they have parted: from there to bad, then from there to good. Where bad is the older
    one, the line begins there.
    """
    if good == bad:
        raise SourceError(
            f"good and bad are the same commit: {good[:12]}",
            hint="a culprit lies between two commits",
        )
    if repository.is_ancestor(good, bad):
        return (_line(repository, good, good, bad),)
    if repository.is_ancestor(bad, good):
        note = (
            f"good {good[:12]} comes after bad {bad[:12]}: they are swapped, since good only says "
            "where the search begins"
        )
        return (_line(repository, bad, bad, good, note),)
    base, note = _parting(repository, good, bad)
    return _line(repository, base, good, bad, note), _line(repository, base, bad, good)


def _line(repository: Repository, begin: str, good: str, end: str, *notes: str) -> Line:
    """Return the line from ``begin`` to ``end``, without what ``good`` reaches."""
    _refuse_border(repository, good, end)
    chain = repository.chain(end, without=(good,))
    return Line(commits=(begin, *chain), notes=notes, known=(begin, good))


def side_lines(
    repository: Repository, merge: str, good: str, *reached_before: str
) -> tuple[Line, ...]:
    """Return one line through each side branch of a merge; none for an ordinary commit.

    ``good`` and ``reached_before`` are those of the line that the merge is on: what they reach is
    left out, as it was searched or is good. A line of what is left may hold merges of its own.
    """
    main_parent, *side_parents = repository.commit(merge).parents or ("",)
    reached = tuple(dict.fromkeys((good, *reached_before, main_parent)))
    lines = []
    for tip in side_parents:
        chain = repository.chain(tip, without=reached)
        if chain:
            # Good may come in with the merge itself; before it the line's first parent is too old.
            begin = good if repository.is_ancestor(main_parent, good) else main_parent
            lines.append(Line(commits=(begin, *chain, merge), known=reached))
        reached = (*reached, tip)  # an octopus: what two branches share is searched once
    return tuple(lines)


def count(repository: Repository, good: str, bad: str) -> int:
    """Return all commits of the range, side branches included."""
    task = "count the commits between good and bad"
    return int(repository.git.must("rev-list", "--count", bad, f"^{good}", what=task))


def _parting(repository: Repository, good: str, bad: str) -> tuple[str, str]:
    """Return where two branches have parted: git's best common ancestor."""
    bases = repository.git.call("merge-base", "--all", good, bad).stdout.split()
    if not bases:
        _refuse_border(repository, good, bad)
        raise SourceError(
            f"{good[:12]} and {bad[:12]} have no common ancestor",
            hint="name two commits of one history",
        )
    several = f", the best of {len(bases)} common ancestors" if len(bases) > 1 else ""
    return bases[0], (
        f"good {good[:12]} and bad {bad[:12]} have parted at {bases[0][:12]}{several}: "
        "all three are measured, and each side over which the cost changes is searched"
    )


def _refuse_border(repository: Repository, good: str, bad: str) -> None:
    """A shallow clone must hold all that lies between."""
    border = repository.border
    if border and not border.isdisjoint(
        repository.git.must(
            "rev-list", bad, f"^{good}", what="list the commits between good and bad"
        ).split()
    ):
        raise SourceError(
            f"{repository.source} is a shallow clone, and what lies between {good[:12]} and "
            f"{bad[:12]} reaches below its border",
            hint=UNSHALLOW,
        )


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
    command = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    output = repository.git.must(
        *command, stdin=pairs, what=f"compare the commits of {repository.source}"
    )
    # COMMIT NUL (:MODE MODE HASH HASH STATUS NUL PATH NUL)*
    fields = iter(output.split("\0")[:-1])
    commit, commit_steps = "", list[CommitStep]()
    for field in fields:
        if field.startswith(":"):
            commit_steps.append(_step(field, next(fields)))
            steps[commit] = tuple(commit_steps)
        else:
            commit, commit_steps = field, []
    return steps


def differences(git: Git, before: str, after: str) -> dict[str, CommitStep]:
    """Return the files by which two trees differ, by path."""
    command = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after)
    output = git.must(*command, what=f"compare {before[:12]} with {after[:12]}")
    fields = iter(output.split("\0")[:-1])
    steps = (_step(facts, next(fields)) for facts in fields)
    return {step.path: step for step in steps}


def server_keys(
    repository: Repository, commits: Sequence[str], *, paths: Sequence[str] = ()
) -> dict[str, str]:
    """Return a key for each commit of a line: the same for all that make the same server.

    With ``paths`` only files there count: a commit that touches none of them cannot be a culprit,
    and gets the key of the one before it.
    """
    files = Tree(git=repository.git, id=commits[0], origin=repository.source).listing()
    counts = _counted(facts_of(files), tuple(path.strip("/") for path in paths))
    # A sum over files is the key of the whole, so that a step costs what it changes, not the tree.
    total = sum(_weight(path, _entry(entry)) for path, entry in files.items() if counts(path))
    keys = {commits[0]: _spelled(total)}
    for commit, steps in steps_along(repository, commits).items():
        total += sum(_change(step) for step in steps if counts(step.path))
        keys[commit] = _spelled(total)
    return keys


def _counted(facts: SourceFacts, paths: tuple[str, ...]) -> Callable[[str], bool]:
    def counts(path: str) -> bool:
        inside = not paths or any(
            path == folder or path.startswith(f"{folder}/") for folder in paths
        )
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
    """Return `ls-tree`'s "MODE TYPE HASH" as `diff-tree` says it."""
    mode, _, digest = listed.split(" ")
    return f"{mode} {digest}"


def _change(step: CommitStep) -> int:
    removed = _weight(step.path, step.before) if step.before else 0
    added = _weight(step.path, step.after) if step.after else 0
    return added - removed


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
    """Return the line's groups, in its order; no commit is lost."""
    return tuple(CommitGroup(commits=tuple(group)) for _, group in groupby(line, key_of))
