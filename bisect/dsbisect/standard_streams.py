"""Standard streams that are closed or full, so that the program can still end as it should.

Imports nothing of the project: it must work even if the project is broken.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Patient(io.FileIO):
    """A file descriptor; what cannot be written to it is dropped."""

    forgiven: type[OSError] = OSError

    def write(self, data, /) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 - a buffer
        size = memoryview(data).nbytes
        with contextlib.suppress(self.forgiven):
            return super().write(data) or size
        return size


class _Unread(_Patient):
    """The same, only if there is no reader any more: a full disk stays an error."""

    forgiven = BrokenPipeError


def fill_gaps() -> None:
    """Open those of 0, 1 and 2 that the caller closed, or a database would get such a number."""
    with contextlib.suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)


def patient(stream: TextIO | None, descriptor: int, *, full: bool = True) -> TextIO:
    """A stream that continues when its reader has gone or, if ``full``, its disk is full."""
    raw = (_Patient if full else _Unread)(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(stream, "encoding", None) or "utf-8",
        errors=getattr(stream, "errors", None) or "backslashreplace",
        line_buffering=descriptor == 2 or raw.isatty(),
    )


def flush(streams: Sequence[TextIO | None]) -> None:
    """Write out what is buffered, as far as it is accepted."""
    for stream in streams:
        with contextlib.suppress(Exception):
            if stream is not None:
                stream.flush()


def leave(code: int) -> None:
    """End at once with this exit code: Python's own end would turn a full stream into 120."""
    flush((sys.stdout, sys.stderr))
    os._exit(code)
