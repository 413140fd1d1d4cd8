"""A named source edit: a change to a source, and what the server must say after it.

An edit finds its place in a source by what stands there; it must be there exactly once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dsharness.errors import EditError
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
        """Raise UsageError for a value that no source can have."""
        ...

    def held(self, files: Files) -> str | None:
        """Return the value that a source has; None where it has none, or not just one."""
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


UNFAMILIAR = "this source differs from every known one; write a patch for it and use --patch"


@dataclass(frozen=True, kw_only=True)
class EditedSource:
    """One file of a tree, being edited."""

    path: str
    text: str

    def only(
        self, pattern: str, what: str, *, within: tuple[int, int] | None = None
    ) -> re.Match[str]:
        """Return the one match of a pattern; EditError when there is none, or more than one."""
        start, end = within or (0, len(self.text))
        matches = list(re.compile(pattern, re.MULTILINE).finditer(self.text, start, end))
        if len(matches) == 1:
            return matches[0]
        count = "there is none" if not matches else f"there are {len(matches)}"
        raise EditError(f"{self.path}: looked for {what}, but {count}", hint=UNFAMILIAR)

    def body(self, function: str) -> tuple[int, int]:
        """Return where a C function's body begins and ends."""
        head = self.only(
            rf"^(?:\w[\w \t*]*[ \t*])?{re.escape(function)}[ \t]*\([^;{{]*\)\s*\{{",
            f"the function {function}()",
        )
        # In this source, as in most of C, only a function's own brace stands in the first column.
        end = re.compile(r"^\}", re.MULTILINE).search(self.text, head.end())
        if end is None:
            raise EditError(f"{self.path}: {function}() does not end", hint=UNFAMILIAR)
        return head.end(), end.start()

    def put(self, span: tuple[int, int], text: str) -> EditedSource:
        """Return the file with other words at one place."""
        start, end = span
        return EditedSource(path=self.path, text=self.text[:start] + text + self.text[end:])


def source(files: Files, path: str, missing: str) -> EditedSource:
    """Return a file that an edit needs; ``missing`` says what its absence means."""
    text = files(path)
    if text is None:
        raise EditError(f"{path}: {missing}")
    return EditedSource(path=path, text=text)
