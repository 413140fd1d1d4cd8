"""Changes of a product that are known to move its cost: the shape of known_changes.yaml.

Nothing here names a row of a matrix. A reason may cite an entry only when the versions and the
facts that were measured fit it.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from dsharness.model import Facts, Value

Release = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]
FactTest = dict[str, tuple[str | int, ...]]  # a fact's name -> the values it may have


class FactsChange(Value):
    """What the system says of itself on either side."""

    before: FactTest = Field(default_factory=dict)
    after: FactTest = Field(default_factory=dict)

    def fits(self, before: Facts, after: Facts) -> bool:
        return _fits(self.before, before) and _fits(self.after, after)


class KnownChange(Value):
    """One change: what it did, the first release of each branch that has it, how one sees it."""

    issue: int | str
    what: str
    first: tuple[Release, ...] = Field(min_length=1, description="one release for each branch")
    unless_set: tuple[str, ...] = Field(
        default=(), description="options with which settings hide it, e.g. a changed default"
    )
    seen_by: tuple[FactsChange, ...] = Field(
        default=(), description="one of these must fit; none: the versions are all that is asked"
    )

    @property
    def releases(self) -> str:
        return ", ".join(self.first)

    def fits(self, before: Facts, after: Facts) -> bool:
        return not self.seen_by or any(each.fits(before, after) for each in self.seen_by)

    def is_in(self, version: tuple[int, ...]) -> bool:
        """Branches run in parallel: 3.0.5 is younger than 2.6.0, and has not what 2.6.1 has."""
        firsts = [numbers(each) for each in self.first]
        branch = [first for first in firsts if first[:2] == version[:2]]
        if branch:
            return version >= branch[0]
        return any(first[:2] < version[:2] for first in firsts)


class KnownChanges(Value):
    """The whole of known_changes.yaml."""

    changes: tuple[KnownChange, ...] = ()

    def between(
        self, before: tuple[str, Facts], after: tuple[str, Facts]
    ) -> tuple[KnownChange, ...]:
        """Those that lie between two measured versions and fit what these say of themselves."""
        old, new = numbers(before[0]), numbers(after[0])
        if not old or not new:
            return ()
        return tuple(
            change
            for change in self.changes
            if change.fits(before[1], after[1]) and not change.is_in(old) and change.is_in(new)
        )


def numbers(version: str) -> tuple[int, ...]:
    """The upstream part of a package's version: ``2:3.61-1+deb11u3`` is (3, 61)."""
    found = re.match(r"(?:\d+:)?v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()


def _fits(wanted: FactTest, facts: Facts) -> bool:
    return all(facts.get(name) in allowed for name, allowed in wanted.items())
