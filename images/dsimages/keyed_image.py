"""An image named by the key of all that went into it: found under that name, or made now, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dsharness.paths import cache_home
from dsimages.buildah import REPOSITORY, Workshop, exists, replacing
from dsimages.file_lock import exclusive

Made = TypeVar("Made")


def ensured(
    at: Workshop, name: str, *, find: Callable[[], Made | None], make: Callable[[], Made]
) -> Made:
    """What ``find`` finds, else what ``make`` makes; one process at a time for one name.

    A workshop that makes everything again does not look for it.
    """
    with exclusive(cache_home() / "locks" / f"{name}.lock", at.deadline):
        found = None if at.fresh else find()
        return make() if found is None else found


def keyed_image(at: Workshop, kind: str, key: str, make: Callable[[str], None]) -> str:
    """The reference of the image of that kind and key; ``make`` is given it, to build it."""
    reference = f"{REPOSITORY}/{kind}:{key}"

    def find() -> str | None:
        return reference if exists(at.engine, reference) else None

    def made() -> str:
        with replacing(at.engine, reference):
            make(reference)
        return reference

    return ensured(at, f"{kind}-{key}", find=find, make=made)
