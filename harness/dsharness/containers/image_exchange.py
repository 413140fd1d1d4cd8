"""What machines that share a registry give each other; a machine alone has nobody to ask."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

T = TypeVar("T")


class ImageExchange(Protocol):
    """Images by the key of all that went into them.

    What goes wrong is told, and raises nothing: the machine then makes what it needs by itself.
    """

    def take(self, kind: str, key: str, reference: str, use: Callable[[], T]) -> T | None:
        """What ``use`` makes of another machine's image, which is here under ``reference``.

        None where there is none, or where it is not what it should be.
        """
        ...

    def give(
        self, kind: str, key: str, lay: Callable[[], AbstractContextManager[str]], *, made: bool
    ) -> None:
        """Let others have what was made here; what was found only if they have none yet.

        ``lay`` is called if it is wanted: the reference of the image, as long as it is needed.
        """
        ...
