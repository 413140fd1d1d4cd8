"""Finding a place in a source by what stands there; it must be there exactly once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dsbuilds.edits.edit import Files
from dsharness.errors import EditError

UNFAMILIAR = "this source differs from every known one; write a patch for it and use --patch"


@dataclass(frozen=True, kw_only=True)
class EditedSource:
    """One file of a tree, being edited."""

    path: str
    text: str

    def only(
        self, pattern: str, what: str, *, within: tuple[int, int] | None = None
    ) -> re.Match[str]:
        """The one match of a pattern; EditError when there is none, or more than one."""
        start, end = within or (0, len(self.text))
        found = list(re.compile(pattern, re.MULTILINE).finditer(self.text, start, end))
        if len(found) == 1:
            return found[0]
        count = "there is none" if not found else f"there are {len(found)}"
        raise EditError(f"{self.path}: looked for {what}, but {count}", hint=UNFAMILIAR)

    def body(self, function: str) -> tuple[int, int]:
        """Where a C function's body begins and ends."""
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
        """The file with other words at one place."""
        start, end = span
        return EditedSource(path=self.path, text=self.text[:start] + text + self.text[end:])


def source(files: Files, path: str, missing: str) -> EditedSource:
    """A file that an edit needs; ``missing`` says what its absence means."""
    text = files(path)
    if text is None:
        raise EditError(f"{path}: {missing}")
    return EditedSource(path=path, text=text)
