"""The tags of a repository."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from dsbuilds.history.repository import Repository
from dsharness.errors import SourceError

PREFIX = "refs/tags/"


def tags_of(repository: Repository, pattern: str) -> tuple[str, ...]:
    """Those that match the pattern, the newest version first."""
    listed = repository.git.must(
        "for-each-ref", "--sort=-version:refname", "--format=%(refname)", PREFIX,
        what=f"list the tags of {repository.source}",
    )  # fmt: skip
    known = [line.removeprefix(PREFIX) for line in listed.splitlines()]
    return chosen(known, pattern, repository.source)


def chosen(known: Sequence[str], pattern: str, source: str) -> tuple[str, ...]:
    found = tuple(tag for tag in known if fnmatchcase(tag, pattern))
    if not found:
        some = ", ".join(known[:3])
        raise SourceError(
            f"{source}: none of its {len(known)} tags matches {pattern!r}",
            hint=f"there are {some} …" if some else "fetch its tags: git fetch --tags",
        )
    return found
