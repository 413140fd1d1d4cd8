"""What a system is filled with, so that loads have something to ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import NonNegativeInt

from dsharness.model.value import Value


class DirectoryContent(Value):
    """Users of a directory, each with a password of its own."""

    kind: Literal["users"] = "users"
    number: NonNegativeInt = 1000


class ZoneContent(Value):
    """Names of a zone, each with an address of its own."""

    kind: Literal["names"] = "names"
    number: NonNegativeInt = 1000


Content = DirectoryContent | ZoneContent


def largest(contents: Iterable[Content]) -> Content:
    """Of one kind, the one that holds all the others."""
    return max(contents, key=lambda each: each.number)
