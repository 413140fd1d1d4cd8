"""What is known of 389-ds and of the libraries that hash for it: facts, each with its source.

Nothing here names a row of a matrix. A finding may cite an entry only when the versions and the
stored passwords that were measured fit it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from dsharness.systems.ldap.stored_password import StoredPassword

ISSUES = "https://github.com/389ds/389-ds-base/issues"


class Maker(Enum):
    """Whose code computes a hash."""

    NSS = "NSS"
    OPENSSL = "OpenSSL"


MAKERS = {
    "PBKDF2_SHA256": Maker.NSS,  # the C plugin
    "PBKDF2-SHA1": Maker.OPENSSL,  # the Rust plugin, as the two below
    "PBKDF2-SHA256": Maker.OPENSSL,
    "PBKDF2-SHA512": Maker.OPENSSL,
}

# Results of PBKDF2 that softoken keeps, by the first NSS version that keeps so many.
NSS_CACHE = (((3, 90), 150), ((3, 72), 3), ((3, 70), 2), ((3, 50), 1))


@dataclass(frozen=True, kw_only=True)
class KnownChange:
    """A change of 389-ds that is known to move the cost of a bind."""

    issue: int
    what: str
    first_tags: tuple[tuple[int, ...], ...]
    fits: Callable[[StoredPassword, StoredPassword], bool]
    only_default_scheme: bool = False

    @property
    def url(self) -> str:
        return f"{ISSUES}/{self.issue}"

    @property
    def tags(self) -> str:
        return ", ".join(".".join(map(str, tag)) for tag in self.first_tags)

    def is_in(self, version: tuple[int, ...]) -> bool:
        """Branches run in parallel: 3.0.5 is younger than 2.6.0, and has not what 2.6.1 has."""
        branch = [tag for tag in self.first_tags if tag[:2] == version[:2]]
        if branch:
            return version >= branch[0]
        return any(tag[:2] < version[:2] for tag in self.first_tags)


def _new_default(before: StoredPassword, after: StoredPassword) -> bool:
    return (before.scheme, after.scheme) == ("PBKDF2_SHA256", "PBKDF2-SHA512")


def _more_rounds(before: StoredPassword, after: StoredPassword) -> bool:
    rust = MAKERS.get(after.scheme) is Maker.OPENSSL
    from_fewer = MAKERS.get(before.scheme) is Maker.NSS or before.rounds == 10_000
    return rust and from_fewer and after.rounds == 100_000


KNOWN_CHANGES = (
    KnownChange(
        issue=5356,
        what="the default scheme became PBKDF2-SHA512 (Rust) instead of PBKDF2_SHA256 (C)",
        first_tags=((2, 0, 17), (2, 1, 6), (2, 2, 3), (2, 3, 0)),
        fits=_new_default,
        only_default_scheme=True,
    ),
    KnownChange(
        issue=6269,
        what="the Rust schemes' default went from 10,000 to 100,000 rounds",
        first_tags=((2, 6, 1), (3, 0, 6), (3, 1, 2)),
        fits=_more_rounds,
    ),
)


def numbers(version: str) -> tuple[int, ...]:
    """The upstream part of a package's version: ``2:3.61-1+deb11u3`` is (3, 61)."""
    found = re.match(r"(?:\d+:)?v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()


def changes_between(
    before: tuple[str, StoredPassword], after: tuple[str, StoredPassword]
) -> tuple[KnownChange, ...]:
    """The known changes that lie between two measured versions and fit what they store."""
    old, new = numbers(before[0]), numbers(after[0])
    if not old or not new:
        return ()
    return tuple(
        change
        for change in KNOWN_CHANGES
        if change.fits(before[1], after[1]) and not change.is_in(old) and change.is_in(new)
    )


def nss_cache_entries(version: str) -> int | None:
    """How many PBKDF2 results this NSS keeps; None where that is not known."""
    found = numbers(version)
    return next((entries for first, entries in NSS_CACHE if found >= first), None)
