"""Reads the access log of 389-ds: each line is an event of a connection, as text or as JSON.

A log was written by a server that may be hostile, and its words by any client of it: lines and
files are bounded, each line is read in a time that grows with its length, and numbers have limits.
"""

from __future__ import annotations

import errno
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dsharness.errors import UsageError
from dsharness.guarded_files import MOST_INPUT, regular_file

LINE_BYTES = 1 << 16  # of one line; 389-ds itself cuts what is longer than a few thousand
PACKED = b"\x1f\x8b"  # how a file that gzip made begins


@dataclass(frozen=True, kw_only=True)
class LogEvent:
    """What one line says; ``details`` is what stands after its word, as the text form has it."""

    at_s: float
    connection: str
    operation: int | None
    word: str
    details: str


@dataclass(frozen=True, kw_only=True)
class UnreadLine:
    """A line that this reader does not know."""

    number: int


_LINE = re.compile(
    r"\[(?P<at>\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2})(?P<part>\.\d{1,12})?"
    r" (?P<zone>[+-]\d{4})\] conn=(?P<connection>\S{1,100})(?P<internal> \(Internal\))?"
    r"(?: op=(?P<operation>-?\d{1,18})(?P<nested>\(\S{1,100})?)?"
    r"(?: fd=\d{1,18})?(?: slot=\d{1,18})? (?P<rest>.+)",
    re.ASCII,
)
_WORD = re.compile(
    r"(?P<word>BIND|AUTOBIND|UNBIND|SRCH|MODRDN|MOD|ADD|DEL|CMP|EXT|ABANDON|RESULT|ENTRY|REFERRAL"
    r"|SORT|VLV|STAT|(?:(?:SSL|TLS|haproxied|proxied) )?connection|closed|Disconnect|SSL|TLS"
    r"|Unauthenticated|fd=)"
)
_HEADER = re.compile(r"\s*$|\s+\S|389-Directory/")  # of a file: version and instance
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
INTERNAL = "internal"  # what the server asks itself
MOST_WAITING = 64 << 20  # letters of requests without an answer
EVENT_CHARACTERS = 500  # what an event takes more than its details
MOST_STRANGE = 100  # lines at the beginning of a file, none of which can be read


def read_line(line: str, number: int) -> LogEvent | UnreadLine | None:
    """Return None for a line of a file's header."""
    if line.startswith("{"):
        return _read_json(line) or UnreadLine(number=number)
    match = _LINE.fullmatch(line)
    word = _WORD.match(match["rest"]) if match else None
    if match is None or word is None:
        return None if _HEADER.match(line) else UnreadLine(number=number)
    inside = match["internal"] or match["nested"] or match["connection"].startswith("Internal")
    return LogEvent(
        at_s=_seconds(match["at"], match["zone"]) + float(f"0{match['part'] or ''}"),
        connection=match["connection"],
        operation=int(match["operation"]) if match["operation"] else None,
        word=INTERNAL if inside else word["word"],
        details=match["rest"][word.end() :],
    )


def _read_json(line: str) -> LogEvent | None:
    """The same of the form of 389-ds 3.1.3 and later with `nsslapd-accesslog-log-format: json`."""
    try:
        fields = json.loads(line)
        at_s = datetime.fromisoformat(_TOO_FINE.sub(r"\1", fields["local_time"])).timestamp()
        word = str(fields["operation"])
        operation = fields.get("op_id")
        return LogEvent(
            at_s=at_s,
            connection=str(fields.get("key", fields["conn_id"])),
            operation=None if operation is None else int(operation),
            word=INTERNAL if fields.get("internal_op") else _JSON_WORDS.get(word, word),
            details=_DETAILS.get(word, "").format_map(_Said(fields)),
        )
    except JSON_ERRORS:
        return None


# What no server means: other types, names that are missing, depth, numbers without a limit.
JSON_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


class _Said(dict[str, object]):
    """Values of a line as the text form writes them; what is not there is empty."""

    def __getitem__(self, name: str) -> str:
        value = self.get(name, "")
        if name == "attrs":
            return f'"{" ".join(map(str, value))}"' if isinstance(value, list) else "ALL"
        if name == "notes" and isinstance(value, list):
            return ",".join(str(note["note"]) for note in value)
        return str(value)


_TOO_FINE = re.compile(r"(\.\d{6})\d* ")  # nanoseconds, before the time zone
_JSON_WORDS = {
    "SEARCH": "SRCH",
    "MODIFY": "MOD",
    "DELETE": "DEL",
    "COMPARE": "CMP",
    "EXTENDED_OP": "EXT",
    "DISCONNECT": "Disconnect",
    "CONNECTION": "connection",
}
_DETAILS = {
    "SEARCH": ' base="{base_dn}" scope={scope} filter="{filter}" attrs={attrs}',
    "BIND": ' dn="{bind_dn}" method={method}',
    "RESULT": (
        " err={err} nentries={nentries} wtime={wtime} optime={optime} etime={etime} notes={notes}"
    ),
    "MODIFY": ' dn="{target_dn}"',
}


def _seconds(local_time: str, zone: str) -> float:
    month = f"{_MONTHS.index(local_time[3:6]) + 1:02d}" if local_time[3:6] in _MONTHS else "01"
    text = f"{local_time[7:11]}-{month}-{local_time[:2]}T{local_time[12:]}{zone}"
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ArithmeticError, OSError, ValueError):  # a day that no calendar has
        return 0.0


class Unanswered:
    """The requests of a log that wait for their answers; UsageError if they are too many."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[int | None, LogEvent]] = {}  # by connection
        self._characters = 0
        self.count = 0

    def asks(self, event: LogEvent) -> None:
        self.answer(event)  # the same number again: the first one is never answered
        self._waiting.setdefault(event.connection, {})[event.operation] = event
        self._add(event, 1)
        if self._characters > MOST_WAITING:
            raise UsageError(
                f"requests of {MOST_WAITING >> 20} million letters wait for their answers in this "
                "log",
                hint="record one with its answers (`nsslapd-accesslog-level: 256`)",
            )

    def answer(self, event: LogEvent) -> LogEvent | None:
        """Return what the event answers."""
        waiting = self._waiting.get(event.connection, {})
        request = waiting.pop(event.operation, None)
        if request is not None:
            self._add(request, -1)
            if not waiting:
                del self._waiting[event.connection]
        return request

    def ends(self, connection: str) -> None:
        """Forget what was not answered by now."""
        for event in self._waiting.pop(connection, {}).values():
            self._add(event, -1)

    def _add(self, event: LogEvent, sign: int) -> None:
        self.count += sign
        self._characters += sign * (EVENT_CHARACTERS + len(event.details))


def read_file(path: Path) -> Iterator[LogEvent | UnreadLine]:
    """Yield the events of one file, which may be compressed; UsageError if it is no access log."""
    known_lines, strange = 0, list[UnreadLine]()
    try:
        for number, line in enumerate(_lines(path), 1):
            match UnreadLine(number=number) if line is None else read_line(line, number):
                case None:
                    continue
                case UnreadLine() as unread if not known_lines:
                    strange.append(unread)
                    if len(strange) == MOST_STRANGE:
                        break
                case event:
                    known_lines += 1
                    yield from strange
                    strange.clear()
                    yield event
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error  # a damaged .gz has a message alone
        raise UsageError(f"{path}: cannot be read: {why}", hint="name an access log") from error
    if strange:
        raise UsageError(
            f"{path}:{strange[0].number}: this is no line of an access log of 389-ds",
            hint="name a server's file `access`, not its error or audit log",
        )


def _lines(path: Path) -> Iterator[str | None]:
    """Yield None for a line that is longer than any that a server writes."""
    with regular_file(path) as stream:
        packed = stream.read(len(PACKED)) == PACKED
        stream.seek(0)
        with gzip.open(stream) if packed else nullcontext(stream) as lines:
            left_bytes, goes_on = MOST_INPUT, False
            while part := lines.readline(LINE_BYTES):
                left_bytes -= len(part)
                if left_bytes < 0:
                    raise OSError(errno.EFBIG, f"it holds more than {MOST_INPUT >> 20} MiB")
                has_ended = part.endswith(b"\n")
                if not goes_on:
                    is_whole = has_ended or len(part) < LINE_BYTES
                    yield part.decode(errors="replace").rstrip("\r\n") if is_whole else None
                goes_on = not has_ended


def read_files(paths: Iterable[Path]) -> Iterator[LogEvent | UnreadLine]:
    """Yield the events of all files, the oldest file first, in whatever order they are named."""
    for path in sorted(paths, key=_begin):
        yield from read_file(path)


def _begin(path: Path) -> float:
    return next((event.at_s for event in read_file(path) if isinstance(event, LogEvent)), 0.0)
