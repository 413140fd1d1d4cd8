"""What a system is filled with before a load asks for it."""

# A kind is one word, which pyright takes for what could be set.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pydantic import Field, NonNegativeInt

from dsharness.model.value import Value


class Content(Value):
    """So many of something; each product says of what."""

    if TYPE_CHECKING:

        @property
        def kind(self) -> str: ...

    number: NonNegativeInt = 1000


class DirectoryPlugin(StrEnum):
    """What a directory does at each write, once it is switched on."""

    MEMBEROF = "memberof"  # users name the groups that they are in
    CHANGELOG = "changelog"  # the retro changelog: each change is an entry, too
    DNA = "dna"  # new users are given a number that nobody has
    REPLICATION = "replication"  # each change is kept for other servers; there is none


class DirectoryContent(Content):
    """Users of a directory, and groups of them."""

    kind: Literal["users"] = "users"
    passwords: NonNegativeInt = 1 << 24  # of so many users at most: hashing takes longest
    groups: NonNegativeInt = 0
    members: NonNegativeInt = 0  # of each group
    photo_bytes: NonNegativeInt = 0  # of each user
    # What servers differ in that hold the same: whether they can encrypt, and what is switched on.
    encrypted: bool = Field(default=False, exclude_if=lambda value: not value)
    plugins: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    # Users in a file from which its own task fills a suffix that nothing else is in.
    imported: NonNegativeInt = Field(default=0, exclude_if=lambda value: not value)


def largest(contents: Iterable[Content]) -> Content:
    """What holds all of these, which are of one kind."""
    all_contents = tuple(contents)
    largest_content = max(all_contents, key=lambda content: content.number)
    parts = type(largest_content).model_fields.keys() - {"kind", "plugins"}
    most = {name: max(getattr(content, name, 0) for content in all_contents) for name in parts}
    return largest_content.model_copy(update=most)
