"""A command's output: bounded in memory, and written to a log as it comes."""

from __future__ import annotations

import os
import re
import select
import selectors
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from dsharness.plain_text import WORD_ENDS, plain_bytes, without_credentials
from dsharness.process.deadline import Deadline

BLOCK = 1 << 16
LOG_BYTES = 64 << 20  # of one log file
LINE_BYTES = 1 << 16  # of a line that is handed on, of a word that is logged
LEFT_OUT = b"[...]"  # the end of a word that is too long
WORD_END = re.compile(b"[" + WORD_ENDS + b"]")
LOG_END_BYTES = 1 << 16  # of a command's last lines, when the log is full


class Sink(Protocol):
    """Takes what a stream says, piece by piece."""

    def add(self, block: bytes) -> None: ...


@dataclass(kw_only=True)
class Kept:
    """Keep start and end of a stream: the cause is early, the result is late."""

    most_bytes: int
    seen_bytes: int = 0
    _first: bytearray = field(default_factory=bytearray)
    _last: deque[bytes] = field(default_factory=deque)
    _last_bytes: int = 0

    def add(self, block: bytes) -> None:
        self.seen_bytes += len(block)
        room = self.most_bytes // 4 - len(self._first)
        if room > 0:
            self._first += block[:room]
            block = block[room:]
        self._last.append(block)
        self._last_bytes += len(block)
        while self._last_bytes - len(self._last[0]) >= self.most_bytes - self.most_bytes // 4:
            self._last_bytes -= len(self._last.popleft())

    @property
    def cut_bytes(self) -> int:
        """How much of the output between was dropped."""
        return self.seen_bytes - len(self._first) - self._last_bytes

    @property
    def text(self) -> str:
        """What is kept, with a line in place of what is not."""
        gap = f"\n[... {self.cut_bytes} bytes are left out here ...]\n" if self.cut_bytes else ""
        content = bytes(self._first) + gap.encode() + b"".join(self._last)
        decoded = content.decode("utf-8", errors="replace")
        return decoded.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(kw_only=True)
class LogEnd:
    """The end of a log file; it grows to a limit, and then takes only the last lines."""

    path: Path
    stream: IO[bytes]
    left_bytes: int
    cut: bool = False

    def add(self, block: bytes) -> None:
        self.stream.write(_shown(block)[: self.left_bytes])
        self.cut = self.cut or len(block) > self.left_bytes
        self.left_bytes -= min(len(block), self.left_bytes)
        self.stream.flush()


@dataclass(kw_only=True)
class WholeWords:
    """Hands one stream on to a log by whole words: a secret that comes in pieces is seen as one."""

    log: LogEnd
    _word: bytearray = field(default_factory=bytearray)
    _is_too_long: bool = False

    def add(self, block: bytes) -> None:
        block = plain_bytes(block)
        if self._is_too_long:
            match = WORD_END.search(block)
            if match is None:
                return
            block, self._is_too_long = block[match.start() :], False
        end = max(block.rfind(word_end) for word_end in WORD_ENDS) + 1
        self._word += block[:end]
        if end:
            self.end()
        self._word += block[end:]
        if len(self._word) > LINE_BYTES:
            self._word = self._word[:LINE_BYTES].partition(b"://")[0] + LEFT_OUT
            self.end()
            self._is_too_long = True

    def end(self) -> None:
        """Write what has come so far, as at the end of the stream."""
        self.log.add(bytes(self._word))
        self._word.clear()


def _shown(block: bytes) -> bytes:
    if b"://" in block:
        text = block.decode("utf-8", errors="surrogateescape")
        block = without_credentials(text).encode("utf-8", errors="surrogateescape")
    return block


def room_in(stream: IO[bytes]) -> int:
    """Return how much a log that is open for appending may still grow."""
    return max(0, LOG_BYTES - os.fstat(stream.fileno()).st_size)


@dataclass(frozen=True, kw_only=True)
class All:
    """Several sinks for one stream."""

    sinks: tuple[Sink, ...]

    def add(self, block: bytes) -> None:
        for sink in self.sinks:
            sink.add(block)


@dataclass(kw_only=True)
class OutputLines:
    """Hands a stream on line by line, as it comes; a line that is too long loses its begin."""

    tell: Callable[[str], None]
    _rest: bytes = b""

    def add(self, block: bytes) -> None:
        *lines, begun_line = (self._rest + block).split(b"\n")
        self._rest = begun_line[-LINE_BYTES:]
        for line in lines:
            self.tell(line.decode("utf-8", errors="replace"))


class FileFullError(Exception):
    """A stream has more than its file may hold: whoever writes on is to be ended."""


@dataclass(kw_only=True)
class ToFile:
    """A stream as a file, byte for byte; the file of one that is too long ends with a line on it.

    The first byte too many raises FileFullError; what comes after it is dropped.
    """

    stream: IO[bytes]
    most_bytes: int
    cut: bool = False
    _written: int = 0

    def add(self, block: bytes) -> None:
        if self.cut:
            return
        self.stream.write(block[: self.most_bytes - self._written])
        self._written += len(block)
        if self._written > self.most_bytes:
            self.cut = True
            self.stream.write(b"\n[... cut off after %d MiB ...]\n" % (self.most_bytes >> 20))
            raise FileFullError


def converse(
    child: subprocess.Popen[bytes], stdin: bytes | None, out: Sink, err: Sink, limit: Deadline
) -> bool:
    """Feed a child and take what it says until both streams end; False when time is up first."""
    waiting = memoryview(stdin or b"")
    with selectors.DefaultSelector() as watched:
        for stream, sink in ((child.stdout, out), (child.stderr, err)):
            if stream is not None and not stream.closed:
                watched.register(stream, selectors.EVENT_READ, sink)
        if child.stdin is not None and not child.stdin.closed:
            watched.register(child.stdin, selectors.EVENT_WRITE)
        while watched.get_map():
            ready = watched.select(max(limit.left_s, 0.01))
            if not ready and limit.passed:
                return False
            for key, _ in ready:
                if key.data is None:
                    waiting = _fed(key.fd, waiting)
                    ended = not waiting
                else:
                    block = os.read(key.fd, BLOCK)
                    key.data.add(block)
                    ended = not block
                if ended:
                    watched.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
            if limit.passed:
                return False
    return _ended(child, limit)


def _fed(descriptor: int, waiting: memoryview) -> memoryview:
    """Return what is left to be written; nothing if there is no reader any more."""
    try:
        return waiting[os.write(descriptor, waiting[: select.PIPE_BUF]) :]
    except BrokenPipeError:
        return waiting[:0]


def _ended(child: subprocess.Popen[bytes], limit: Deadline) -> bool:
    try:
        child.wait(timeout=max(limit.left_s, 0.01))
    except subprocess.TimeoutExpired:
        return False
    return True
