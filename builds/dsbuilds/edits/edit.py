"""A named source edit: a change to a source, and what the server must say after it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dsharness.model import AppliedPatch, Promise

Files = Callable[[str], str | None]
"""Reads a file of a tree by its path; None where there is none."""


@dataclass(frozen=True, kw_only=True)
class Edited:
    """Path -> new text of every file that changes."""

    files: Mapping[str, str]
    promise: Promise


class Edit(Protocol):
    """One kind of change with one parameter."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def parameter(self) -> str:
        """What the value may be, for help texts."""
        ...

    @property
    def example(self) -> str: ...

    def check(self, value: str) -> None:
        """EditError for a value that no source can have."""
        ...

    def held(self, files: Files) -> str | None:
        """The value that a source has; None where it has none, or not just one."""
        ...

    def apply(self, value: str, files: Files) -> Edited:
        """The changed files; EditError names the precondition that fails and what would work."""
        ...


@dataclass(frozen=True, kw_only=True)
class Patch:
    """A unified diff with its name and what it must lead to."""

    name: str
    title: str
    text: str
    promise: Promise = field(default_factory=Promise)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def applied(self) -> AppliedPatch:
        """What a build keeps of it."""
        return AppliedPatch(name=self.name, title=self.title, sha256=self.sha256)


def promise_of(patches: Iterable[Patch]) -> Promise:
    """What all patches together promise; if two promise the same thing, the later one counts."""
    whole = Promise()
    for patch in patches:
        whole = whole.then(patch.promise)
    return whole
