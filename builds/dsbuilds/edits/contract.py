"""What an edit is: a change to a source by its meaning, and what the server must store after it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dsharness.model import StoredPassword

Files = Callable[[str], str | None]
"""Reads a file of a tree by its path; None where there is none."""

C_SCHEME = "PBKDF2_SHA256"  # computed by NSS; its rounds are tuned at start-up
RUST_SCHEMES = ("PBKDF2", "PBKDF2-SHA1", "PBKDF2-SHA256", "PBKDF2-SHA512")


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What the running server must store afterwards; None where an edit says nothing of it."""

    scheme: str | None = None
    rust_rounds: int | None = None
    c_rounds: int | None = None

    def refused(self, stored: StoredPassword) -> str | None:
        """Why what was read back is not what the edits ask for; None when it is."""
        if self.scheme is not None and stored.scheme.upper() != self.scheme.upper():
            return f"the server stores passwords under {stored.scheme}, not {self.scheme}"
        wanted = self._rounds_of(stored.scheme.upper())
        if wanted is not None and stored.rounds != wanted:
            return f"the server stores {stored.scheme} with {stored.rounds} rounds, not {wanted}"
        return None

    def then(self, later: Expectation) -> Expectation:
        """Both at once; where both speak of the same, the later edit holds."""
        return Expectation(
            scheme=self.scheme if later.scheme is None else later.scheme,
            rust_rounds=self.rust_rounds if later.rust_rounds is None else later.rust_rounds,
            c_rounds=self.c_rounds if later.c_rounds is None else later.c_rounds,
        )

    def stated(self) -> dict[str, Any]:
        """As the fields of a Build."""
        rounds = {"rust": self.rust_rounds, "c": self.c_rounds}
        return {
            "expected_scheme": self.scheme,
            "expected_rounds": {kind: n for kind, n in rounds.items() if n is not None},
        }

    def _rounds_of(self, scheme: str) -> int | None:
        if scheme == C_SCHEME:
            return self.c_rounds
        return self.rust_rounds if scheme in RUST_SCHEMES else None


@dataclass(frozen=True, kw_only=True)
class Edited:
    """Path -> new text of every file that changes."""

    files: Mapping[str, str]
    expect: Expectation


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

    def apply(self, value: str, files: Files) -> Edited:
        """The changed files; EditError names the precondition that fails and what would work."""
        ...


@dataclass(frozen=True, kw_only=True)
class Patch:
    """A unified diff with its name and what it must lead to."""

    name: str
    title: str
    text: str
    expect: Expectation = field(default_factory=Expectation)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogateescape")).hexdigest()
