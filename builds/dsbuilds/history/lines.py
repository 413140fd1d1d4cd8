r"""From two revisions to lines that can be searched: along first parents, then through merges.

     s1 - s2                 [good, a, M, b]   the first-parent line
    /       \
good - a --- M - b           [a, s1, s2, M]    if M turned slow: the line through its side branch

Every commit between good and bad is inside exactly one of these lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsbuilds.history.repository import UNSHALLOW, Repository
from dsharness.errors import SourceError


@dataclass(frozen=True, kw_only=True)
class Line:
    """Commits in an order one can search along, oldest first, both ends included."""

    commits: tuple[str, ...]
    notes: tuple[str, ...] = ()
    known: tuple[
        str, ...
    ] = ()  # what these reach lies outside; ``side_lines`` continues from there


def line(repository: Repository, good: str, bad: str) -> Line:
    """The first-parent line from good to bad, both full hashes."""
    if good == bad:
        raise SourceError(
            f"good and bad are the same commit: {good[:12]}",
            hint="a culprit lies between two commits",
        )
    begin, notes = good, list[str]()
    if not repository.is_ancestor(good, bad):
        begin, note = _parting(repository, good, bad)
        notes.append(note)
    _refuse_border(repository, good, bad)
    chain = repository.chain(bad, without=(good,))
    return Line(commits=(begin, *chain), notes=tuple(notes), known=(begin, good))


def side_lines(repository: Repository, merge: str, good: str, *known: str) -> tuple[Line, ...]:
    """One line through each side branch of a merge; none for an ordinary commit.

    ``good`` and ``known`` are those of the line that the merge is on: what they reach is left out,
    as it was searched or is good. A line of what is left may hold merges of its own.
    """
    first, *others = repository.commit(merge).parents or ("",)
    reached = tuple(dict.fromkeys((good, *known, first)))
    lines = []
    for other in others:
        chain = repository.chain(other, without=reached)
        if chain:
            # Good may come in with the merge itself; before it the line's first parent is too old.
            begin = good if repository.is_ancestor(first, good) else first
            lines.append(Line(commits=(begin, *chain, merge), known=reached))
        reached = (*reached, other)  # an octopus: what two branches share is searched once
    return tuple(lines)


def count(repository: Repository, good: str, bad: str) -> int:
    """All commits of the range, side branches included."""
    what = "count the commits between good and bad"
    return int(repository.git.must("rev-list", "--count", bad, f"^{good}", what=what))


def _parting(repository: Repository, good: str, bad: str) -> tuple[str, str]:
    """Where two branches parted, when good is not on the way to bad."""
    if repository.is_ancestor(bad, good):
        raise SourceError(
            f"bad {bad[:12]} comes before good {good[:12]}: swapped?",
            hint=f"--good {bad[:12]} --bad {good[:12]}: good is where the search begins",
        )
    bases = repository.git.call("merge-base", "--all", good, bad).stdout.split()
    if not bases:
        _refuse_border(repository, good, bad)
        raise SourceError(
            f"{good[:12]} and {bad[:12]} have no common ancestor",
            hint="name two commits of one history",
        )
    note = (
        f"good {good[:12]} is not on the way to bad {bad[:12]}: "
        f"the search begins where they parted, at {bases[0][:12]}"
    )
    if len(bases) > 1:
        note += f" (they parted at {len(bases)} commits; this is one of them)"
    return bases[0], note


def _refuse_border(repository: Repository, good: str, bad: str) -> None:
    """A shallow clone must hold all that lies between."""
    border = repository.border
    if border and not border.isdisjoint(repository.git.must(
        "rev-list", bad, f"^{good}", what="list the commits between good and bad"
    ).split()):  # fmt: skip
        raise SourceError(
            f"{repository.source} is a shallow clone, and what lies between {good[:12]} and "
            f"{bad[:12]} reaches below its border",
            hint=UNSHALLOW,
        )
