"""Reads the access log of 389-ds: each line is an event of a connection, as text or as JSON."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dsharness.errors import UsageError


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
    r"\[(?P<at>\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2})(?P<part>\.\d+)? (?P<zone>[+-]\d{4})\] "
    r"conn=(?P<connection>\S+)(?P<internal> \(Internal\))?"
    r"(?: op=(?P<operation>-?\d+)(?P<nested>\(\S+)?)?(?: fd=\d+)?(?: slot=\d+)? (?P<rest>.+)"
)
_WORD = re.compile(
    r"(?P<word>BIND|AUTOBIND|UNBIND|SRCH|MODRDN|MOD|ADD|DEL|CMP|EXT|ABANDON|RESULT|ENTRY|REFERRAL"
    r"|SORT|VLV|STAT|(?:(?:SSL|TLS|haproxied|proxied) )?connection|closed|Disconnect|SSL|TLS"
    r"|Unauthenticated|fd=)"
)
_HEADER = re.compile(r"\s*$|\s+\S|389-Directory/")  # of a file: version and instance
_MONTHS = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
INTERNAL = "internal"  # what the server asks itself
MOST_STRANGE = 100  # lines at the beginning of a file, none of which can be read


def read_line(line: str, number: int) -> LogEvent | UnreadLine | None:
    """None for a line of a file's header."""
    if line.startswith("{"):
        return _read_json(line) or UnreadLine(number=number)
    found = _LINE.fullmatch(line)
    word = _WORD.match(found["rest"]) if found else None
    if found is None or word is None:
        return None if _HEADER.match(line) else UnreadLine(number=number)
    inside = found["internal"] or found["nested"] or found["connection"].startswith("Internal")
    return LogEvent(
        at_s=_seconds(found["at"], found["zone"]) + float(f"0{found['part'] or ''}"),
        connection=found["connection"],
        operation=int(found["operation"]) if found["operation"] else None,
        word=INTERNAL if inside else word["word"],
        details=found["rest"][word.end() :],
    )


def _read_json(line: str) -> LogEvent | None:
    """The same of the form of 389-ds 3.1.3 and later with `nsslapd-accesslog-log-format: json`."""
    try:
        said = json.loads(line)
        at_s = datetime.fromisoformat(_TOO_FINE.sub(r"\1", said["local_time"])).timestamp()
        word = str(said["operation"])
        operation = said.get("op_id")
        return LogEvent(
            at_s=at_s,
            connection=str(said.get("key", said["conn_id"])),
            operation=None if operation is None else int(operation),
            word=INTERNAL if said.get("internal_op") else _JSON_WORDS.get(word, word),
            details=_DETAILS.get(word, "").format_map(_Said(said)),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


class _Said(dict[str, object]):
    """Values of a line as the text form writes them; what is not there is empty."""

    def __getitem__(self, name: str) -> str:
        value = self.get(name, "")
        if name == "attrs":
            return f'"{" ".join(map(str, value))}"' if isinstance(value, list) else "ALL"
        if name == "notes" and isinstance(value, list):
            return ",".join(str(each["note"]) for each in value)
        return str(value)


_TOO_FINE = re.compile(r"(\.\d{6})\d* ")  # nanoseconds, before the time zone
_JSON_WORDS = {
    "SEARCH": "SRCH", "MODIFY": "MOD", "DELETE": "DEL", "COMPARE": "CMP", "EXTENDED_OP": "EXT",
    "DISCONNECT": "Disconnect", "CONNECTION": "connection",
}  # fmt: skip
_DETAILS = {
    "SEARCH": ' base="{base_dn}" scope={scope} filter="{filter}" attrs={attrs}',
    "BIND": ' dn="{bind_dn}" method={method}',
    "RESULT": (
        " err={err} nentries={nentries} wtime={wtime} optime={optime} etime={etime} notes={notes}"
    ),
    "MODIFY": ' dn="{target_dn}"',
}


def _seconds(at: str, zone: str) -> float:
    month = f"{_MONTHS.index(at[3:6]) + 1:02d}" if at[3:6] in _MONTHS else "01"
    text = f"{at[7:11]}-{month}-{at[:2]}T{at[12:]}{zone}"
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def read_file(path: Path) -> Iterator[LogEvent | UnreadLine]:
    """The events of one file, which may be compressed; UsageError if it is no access log."""
    known, strange = 0, list[UnreadLine]()
    try:
        for number, line in enumerate(_lines(path), 1):
            match read_line(line, number):
                case None:
                    continue
                case UnreadLine() as unread if not known:
                    strange.append(unread)
                    if len(strange) == MOST_STRANGE:
                        break
                case event:
                    known += 1
                    yield from strange
                    strange.clear()
                    yield event
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or error  # a damaged .gz has a message alone
        raise UsageError(f"{path}: cannot be read: {why}", hint="name an access log") from error
    if strange:
        raise UsageError(
            f"{path}:{strange[0].number}: this is no line of an access log of 389-ds",
            hint="name a server's file `access`, not its error or audit log",
        )


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as lines:
        for line in lines:
            yield line.decode(errors="replace").rstrip("\r\n")


def read_files(paths: Iterable[Path]) -> Iterator[LogEvent | UnreadLine]:
    """The events of all files, the oldest file first, in whatever order they are named."""
    for path in sorted(paths, key=_begin):
        yield from read_file(path)


def _begin(path: Path) -> float:
    return next((each.at_s for each in read_file(path) if isinstance(each, LogEvent)), 0.0)
