"""Commits that make the same server stand together; the oldest one stands for all. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Class:
    """Neighbours on a line that make the same server."""

    commits: tuple[str, ...]

    @property
    def first(self) -> str:
        """The only one of them that may have changed the server."""
        return self.commits[0]


def collapse(line: Sequence[str], key_of: Callable[[str], str]) -> tuple[Class, ...]:
    """The line's classes, in its order; nobody is lost."""
    classes: list[Class] = []
    before: str | None = None
    for commit in line:
        key = key_of(commit)
        if classes and key == before:
            classes[-1] = Class(commits=(*classes[-1].commits, commit))
        else:
            classes.append(Class(commits=(commit,)))
        before = key
    return tuple(classes)
