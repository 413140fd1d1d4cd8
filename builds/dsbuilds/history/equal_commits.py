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
    groups: list[list[str]] = []
    before: str | None = None
    for commit in line:
        key = key_of(commit)
        if groups and key == before:
            groups[-1].append(commit)
        else:
            groups.append([commit])
        before = key
    return tuple(Class(commits=tuple(group)) for group in groups)
