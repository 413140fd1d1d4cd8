"""Trying ways to build a tree, one after the other, until one works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.toolchain_choice import Way

Made = TypeVar("Made")


def first_that_works(
    ways: Sequence[Way], make: Callable[[Way], Made], told: Callable[[str], None]
) -> tuple[Made, Way]:
    """What the first way made that works; the next is tried only where it may help."""
    for way, following in zip(ways, [*ways[1:], None], strict=True):
        try:
            return make(way), way
        except UnbuildableError as error:
            if following is None or not error.toolchain_may_be_wrong:
                raise
            told(f"{error.message}; trying {following.title}")
    raise AssertionError("there is at least one way")
