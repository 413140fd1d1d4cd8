"""Files that somebody else could have written: opened without a wait, as what they are, bounded.

A container, a build or a user may put a link, a pipe, a device or a file without an end where the
lab looks for a file. Below a folder that others can write to, no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NAMED = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
FILE = NAMED | os.O_NOFOLLOW
SOCKET = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_BYTES = 64 << 20  # of a file that is read whole
MOST_INPUT = 1 << 30  # of an export or a log: a sample has about three thousand bytes


@contextmanager
def opened(folder: Path, *parts: str) -> Iterator[int]:
    """Yield a folder's descriptor; below ``folder``, no link is followed."""
    descriptors = [os.open(folder, FOLDER)]
    try:
        for part in parts:
            descriptors.append(os.open(part, FOLDER, dir_fd=descriptors[-1]))
        yield descriptors[-1]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@contextmanager
def regular_file(name: str | Path, *, below: int | None = None) -> Iterator[BinaryIO]:
    """Yield a regular file to read; OSError for anything else.

    With ``below``, a folder's descriptor, the name is that of a file in it and never a link;
    without, it is what a user named, where a link is the user's own.
    """
    descriptor = os.open(name, NAMED if below is None else FILE, dir_fd=below)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(name))
        yield stream


def shared_file(folder: Path, name: str, *, most_bytes: int) -> bytes:
    """The end of a file in a folder that others write to; OSError if it is no regular file."""
    with opened(folder) as below, regular_file(name, below=below) as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - most_bytes))
        return stream.read(most_bytes)


def given_file(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the whole of a file that a user named; OSError if it is none, or larger than that."""
    with regular_file(path) as stream:
        return _within(stream, str(path), most_bytes)


def given_input(name: str, *, most_bytes: int = MOST_INPUT) -> bytes:
    """Return the whole of a file or pipe that a user named, or of standard input for ``-``.

    OSError for anything else, and if it is larger than that. A named pipe that nobody writes to is
    empty.
    """
    if name == "-":
        return _within(sys.stdin.buffer, "-", most_bytes)
    descriptor = os.open(name, NAMED)
    with os.fdopen(descriptor, "rb") as stream:
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "it is neither a file nor a pipe", name)
        os.set_blocking(descriptor, True)  # a pipe's writer may take its time
        return _within(stream, name, most_bytes)


def _within(stream: BinaryIO, name: str, most_bytes: int) -> bytes:
    content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes >> 20} MiB", name)
    return content


@contextmanager
def shared_socket(path: Path) -> Iterator[str]:
    """Yield a path that leads to the socket there and nowhere else, while it is held."""
    with opened(path.parent) as below:
        descriptor = os.open(path.name, SOCKET, dir_fd=below)
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOTSOCK, "it is not a socket", str(path))
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
