r"""Lines between two revisions that can be searched: along first parents, then through merges.

     s1 - s2                 [good, a, M, b]   the first-parent line
    /       \
good - a --- M - b           [a, s1, s2, M]    if M turned slow: the line through its side branch

Every commit between good and bad is inside exactly one of these lines. Where neither leads to the
other, as with tags of two branches, there are two such lines from where they have parted:

       b1 - bad            [base, b1, bad] and [base, g1, good]
      /
... base - g1 - good
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


def lines_between(repository: Repository, good: str, bad: str) -> tuple[Line, ...]:
    """The first-parent line from good to bad, both full hashes.

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


def _line(repository: Repository, begin: str, other: str, end: str, *notes: str) -> Line:
    """The line from ``begin`` to ``end``, without what ``other`` reaches."""
    _refuse_border(repository, other, end)
    chain = repository.chain(end, without=(other,))
    return Line(commits=(begin, *chain), notes=notes, known=(begin, other))


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
    """Where two branches have parted: git's best common ancestor."""
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
    if border and not border.isdisjoint(repository.git.must(
        "rev-list", bad, f"^{good}", what="list the commits between good and bad"
    ).split()):  # fmt: skip
        raise SourceError(
            f"{repository.source} is a shallow clone, and what lies between {good[:12]} and "
            f"{bad[:12]} reaches below its border",
            hint=UNSHALLOW,
        )
