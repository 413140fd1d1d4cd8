"""How likely a commit is the culprit by the files it changes, before anything is measured. Pure.

Mild on purpose: a culprit in an unexpected place costs a run or two more, never a wrong answer
(docs/search.md has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from dsharness.errors import UsageError

HOT: Mapping[str, float] = {
    # what runs for each operation
    "ldap/servers/plugins/pwdstorage/*": 3.0,
    "src/plugins/*": 3.0,
    "ldap/servers/slapd/*": 2.0,
    "src/slapd/*": 2.0,
    "src/slapi_r_plugin/*": 2.0,
    "src/librslapd/*": 2.0,
    "ldap/servers/plugins/*": 1.5,
    "ldap/libraries/*": 1.5,
    # how it is built can change everything, but rarely does
    "configure.ac": 1.0,
    "Makefile.am": 1.0,
    "m4/*": 1.0,
    "*Cargo.*": 1.0,
    # what the server reads once
    "ldap/schema/*": 0.7,
    "ldap/ldif/*": 0.7,
    "ldap/admin/*": 0.5,
    "man/*": 0.3,
}
OTHER = 0.5
LEAST, MOST = 0.01, 100.0  # above this a wrong guess would cost more than a right one saves


def weight(files: Iterable[str], table: Mapping[str, float] = HOT) -> float:
    """The weight of the most suspicious file; the first pattern that matches a file decides."""
    return max((_of(path, table) for path in files), default=OTHER)


def prior_of(
    candidates: Mapping[str, Iterable[str]], table: Mapping[str, float] = HOT
) -> dict[str, float]:
    """For each candidate, by the files that differ from the one before."""
    return {name: weight(files, table) for name, files in candidates.items()}


def prior_table(wanted: Iterable[str]) -> dict[str, float]:
    """The user's patterns before the known ones; UsageError says what is wrong."""
    own: dict[str, float] = {}
    for text in wanted:
        pattern, _, value = text.rpartition("=")
        try:
            own[pattern] = float(value)
        except ValueError:
            own[pattern] = math.nan
        if not pattern or not LEAST <= own[pattern] <= MOST:
            raise UsageError(
                f"--prior {text!r}: must be PATTERN=WEIGHT with a weight from {LEAST:g} to "
                f"{MOST:g}",
                hint="for example --prior 'ldap/servers/slapd/back-ldbm/*=5'",
            )
    return {**own, **{pattern: value for pattern, value in HOT.items() if pattern not in own}}


def _of(path: str, table: Mapping[str, float]) -> float:
    return next((value for pattern, value in table.items() if fnmatchcase(path, pattern)), OTHER)
