r"""From two revisions to lines that can be searched: along first parents, then through merges.

s1 - s2            [good, a, M, b]   the first-parent line
/       \
good - a ---- M - b      [a, s1, s2, M]    if M turned slow: the line through its side branch
"""

from __future__ import annotations

from dataclasses import dataclass

from dsbuilds.history.repository import Repository
from dsharness.errors import SourceError


@dataclass(frozen=True, kw_only=True)
class Line:
    """Commits in an order one can search along, oldest first, both ends included."""

    commits: tuple[str, ...]
    notes: tuple[str, ...] = ()


def line(repository: Repository, good: str, bad: str) -> Line:
    """The first-parent line from good to bad, both full hashes."""
    if good == bad:
        raise SourceError(
            f"good and bad are the same commit: {good[:12]}",
            hint="a culprit lies between two commits",
        )
    notes: list[str] = []
    if not repository.is_ancestor(good, bad):
        good, note = _common(repository, good, bad)
        notes.append(note)
    chain = repository.git.must(
        "rev-list", "--first-parent", "--reverse", bad, f"^{good}",
        what="list the commits between good and bad",
    ).split()  # fmt: skip
    return Line(commits=(good, *chain), notes=tuple(notes))


def side_lines(repository: Repository, merge: str, good: str) -> tuple[Line, ...]:
    """One line through each side branch of a merge; none for an ordinary commit."""
    first, *others = repository.commit(merge).parents or ("",)
    lines = []
    for other in others:
        chain = repository.git.must(
            "rev-list", "--first-parent", "--reverse", other, f"^{first}", f"^{good}",
            what=f"list what {merge[:12]} merged",
        ).split()  # fmt: skip
        if chain:
            lines.append(Line(commits=(first, *chain, merge)))
    return tuple(lines)


def count(repository: Repository, good: str, bad: str) -> int:
    """All commits of the range, side branches included."""
    what = "count the commits between good and bad"
    return int(repository.git.must("rev-list", "--count", bad, f"^{good}", what=what))


def _common(repository: Repository, good: str, bad: str) -> tuple[str, str]:
    """Where two branches parted, when good is not on the way to bad."""
    if repository.is_ancestor(bad, good):
        raise SourceError(
            f"bad {bad[:12]} comes before good {good[:12]}: swapped?",
            hint="--good is the older, fast one",
        )
    bases = repository.git.call("merge-base", good, bad).stdout.split()
    if not bases:
        if repository.shallow:
            raise SourceError(
                f"{repository.source} is a shallow clone that does not reach from "
                f"{bad[:12]} back to {good[:12]}",
                hint="fetch the rest: git fetch --unshallow",
            )
        raise SourceError(
            f"{good[:12]} and {bad[:12]} have no common ancestor",
            hint="name two commits of one history",
        )
    note = (
        f"good {good[:12]} is not on the way to bad {bad[:12]}: "
        f"the search begins where they parted, at {bases[0][:12]}"
    )
    return bases[0], note
