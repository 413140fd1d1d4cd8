"""Three equal failures in a row are not the candidates' fault. Core pure logic, no I/O.

[a: no such header, b: no such header, c: no such header]   stop: the next would fail too
[a: no such header, b: built, c: no such header]            continue
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from dsharness.errors import CandidateError, SystematicError

EQUAL_FAILURES = 3  # in a row
DIFFERING = (
    (re.compile(r"\S+:\d+(:\d+)?:"), ""),  # a place in a file
    (re.compile(r"(?<![\w.])/[^\s'\"`,;:()]+"), "/…"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b"), "…"),  # a hash
    (re.compile(r"\d+"), "#"),
)


def kind_of(message: str) -> str:
    """The first line without what differs from candidate to candidate: paths, hashes, numbers."""
    line = next((line for line in message.splitlines() if line.strip()), "")
    for mark, instead in DIFFERING:
        line = mark.sub(instead, line)
    return " ".join(line.split())


@dataclass
class FailureRow:
    """The candidates that failed in a row, and how."""

    names: list[str] = field(default_factory=list)
    kind: str = ""

    @classmethod
    def after(cls, failures: Iterable[tuple[str, str]]) -> FailureRow:
        """What was known before the search began."""
        row = cls()
        for name, message in failures:
            row._note(name, message)
        return row

    def worked(self) -> None:
        """A candidate that was not tried before could be measured."""
        self.names.clear()

    def failed(self, name: str, error: CandidateError) -> None:
        """SystematicError when it is the third in a row with the same failure."""
        self._note(name, error.message)
        if len(self.names) >= EQUAL_FAILURES:
            raise SystematicError(
                f"{', '.join(self.names)} cannot be measured for the same reason, one after the "
                f"other; the latest: {error.message}",
                hint="others would fail too: fix what they have in common (a toolchain, a "
                "package, --fix REVISION for what the sources need), or search a range without "
                "them; `dsbisect build survey` shows what can be built and started",
                of=error,
            )

    def _note(self, name: str, message: str) -> None:
        kind = kind_of(re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", message))
        if kind != self.kind:
            self.names.clear()
        self.kind = kind
        self.names.append(name)
