"""A commit as git tells it."""

from __future__ import annotations

from dataclasses import dataclass

from dsbuilds.git import Git
from dsharness.plain_text import plain

# No text of a commit can hold a NUL, whatever else somebody wrote into it.
FIELDS = ("%H", "%T", "%P", "%an <%ae>", "%aI", "%s")
FORMAT = "".join(f"{field}%x00" for field in FIELDS)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """Who changed what, when, on top of what."""

    hash: str
    tree: str
    parents: tuple[str, ...]
    author: str
    date: str
    subject: str


def read_commits(git: Git, arguments: tuple[str, ...], *, what: str) -> tuple[Commit, ...]:
    """What `git rev-list` lists for these arguments, in its order."""
    listed = git.must("rev-list", "--encoding=UTF-8", f"--format={FORMAT}", *arguments, what=what)
    told = listed.split("\0")[:-1]
    size = len(FIELDS)
    return tuple(_commit(told[start : start + size]) for start in range(0, len(told), size))


def _commit(told: list[str]) -> Commit:
    header, tree, parents, author, date, subject = told
    return Commit(
        hash=header.rpartition("\n")[2],  # git's own "commit HASH" line comes before it
        tree=tree,
        parents=tuple(parents.split()),
        author=plain(author),
        date=plain(date),
        subject=plain(subject),
    )
