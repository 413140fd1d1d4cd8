"""Where secrets turn up in bytes: as they are, quoted, coded, in pieces, as numbers. Pure."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from dsharness.model import Value

SHORTEST = 8  # bytes: a shorter one turns up by chance; and the search looks at as many at once
PIECE = 4 << 20  # of a text; numbers of several times that are held for it
AS_IT_IS, AS_BASE64, AS_HEX = "as it is", "as base64", "as hexadecimal digits"
WHOLE, FOLDED, SMALL = "as it stands", "folded", "in small letters"
LINE_END = b"\n"
ZEROS = re.compile(rb"\0{64,}")
FOLDS = re.compile(rb"\r?\n ")  # of LDIF, inside a value
BETWEEN = b"\0\t\n\r \"',"  # ends of lines, what UTF-16 has between letters, what lists have
# \u0070 of JSON, \7b of a DN or a filter, \x7b of C; %7B of a URL, =7B of a mail, &#112; of HTML.
BACKSLASHES = re.compile(
    rb"\\u\{?([0-9A-Fa-f]{2,6})\}?|\\x?([0-9A-Fa-f]{2})|()()\\([^0-9A-Fa-fux])"
)
MARKS = re.compile(
    rb"(?:%u|&#[xX])([0-9A-Fa-f]{2,6});?|[%=]([0-9A-Fa-f]{2})|&#(\d{2,7});"
    rb"|&(quot|apos|amp|lt|gt);|=\r?\n()"
)
OCTAL = re.compile(rb"\\([0-3][0-7]{2})|\\([^0-7])")
ENTITIES = {b"quot": b'"', b"apos": b"'", b"amp": b"&", b"lt": b"<", b"gt": b">"}
NUMBER = rb"(?:0x|\\x)?[0-9A-Fa-f]{1,4}"
RUN = re.compile(rb"(?<![0-9A-Za-z])(?:%b[ ,:;.-]{1,2})+%b(?![0-9A-Za-z])" % (NUMBER, NUMBER))
WORD = re.compile(rb"(?:0x|\\x)?([0-9A-Fa-f]{1,4})")
DUMP_GAP = 100  # bytes between the numbers of two lines: letters of the one, address of the other
DIGITS = re.compile(r"\d+")

URL_SAFE = bytes.maketrans(b"+/", b"-_")


class SecretKind(StrEnum):
    """The kinds of secrets: who finds one could log in, guess, or decrypt."""

    PASSWORD = "password"  # noqa: S105 - a kind
    HASH = "hash"
    KEY = "key"


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A password, a hash or a key that a validation uses."""

    name: str  # "the password of uid=a,dc=lab"
    kind: SecretKind
    value: bytes = field(repr=False)


class Find(Value):
    """A secret where it was found; never its value."""

    place: str  # a file with its line, an entry of a reply
    secret: str  # its name
    kind: SecretKind
    form: str

    @property
    def like(self) -> tuple[str, SecretKind]:
        """The same for the same file of another server: numbers in names differ."""
        return DIGITS.sub("#", self.place.partition(", line ")[0]), self.kind

    def __str__(self) -> str:
        return f"{self.place}: {self.secret}, {self.form}"


def finds_in(parts: Mapping[str, bytes], secrets: Iterable[Secret]) -> Iterator[Find]:
    """Find each secret once in each part, with the line where it was first seen."""
    search = _search_for(tuple(secrets))
    for place, data in parts.items():
        open_secrets = set(search.secrets)
        for view, text in _views(data):
            for position, needle in search.hits(text):
                if needle.secret in open_secrets:
                    open_secrets.discard(needle.secret)
                    line = f", line {text.count(LINE_END, 0, position) + 1}"
                    yield Find(
                        place=place + (line if view in (WHOLE, SMALL) else ""),
                        secret=needle.secret.name,
                        kind=needle.secret.kind,
                        form=_form(view, needle.form),
                    )
            if not open_secrets:
                break


def _form(view: str, form: str) -> str:
    return view if form == AS_IT_IS and view not in (WHOLE, FOLDED) else form


def without_secrets(data: bytes, secrets: Iterable[Secret]) -> bytes:
    """Leave out each secret, in every form in which it is found as it stands."""
    for secret in secrets:
        if len(secret.value) >= SHORTEST:
            for _, needle in needles(secret.value):
                data = data.replace(needle, "…".encode())
    return data


def new_finds(patched: Iterable[Find], stock: Iterable[Find]) -> tuple[Find, ...]:
    """Return what stock has not: no secret of this kind in a place of this name."""
    stock_finds = {find.like for find in stock}
    return tuple(find for find in patched if find.like not in stock_finds)


def needles(value: bytes) -> Iterator[tuple[str, bytes]]:
    """Form and bytes of each way to write a value; base64 depends on what stands before it."""
    yield AS_IT_IS, value
    for encoded in (value, *_as_utf_16(value)):
        for before in range(3):
            coded = base64.b64encode(b"\0" * before + encoded)
            begin = -(-8 * before // 6)
            inner = coded[begin : 8 * (before + len(encoded)) // 6]
            yield AS_BASE64, inner
            if inner.translate(URL_SAFE) != inner:
                yield AS_BASE64, inner.translate(URL_SAFE)
    yield AS_HEX, value.hex().encode()
    yield AS_HEX, value.hex().upper().encode()


def _as_utf_16(value: bytes) -> Iterator[bytes]:
    with suppress(UnicodeDecodeError):
        text = value.decode()
        yield text.encode("utf-16-le")
        yield text.encode("utf-16-be")


@dataclass(frozen=True, kw_only=True)
class _Needle:
    secret: Secret
    form: str
    text: bytes


class _Search:
    """All needles at once: each place is looked at once, however many needles there are."""

    def __init__(self, secrets: tuple[Secret, ...]) -> None:
        self.secrets = tuple(secret for secret in secrets if len(secret.value) >= SHORTEST)
        self._by_begin: dict[bytes, dict[bytes, _Needle]] = {}
        for secret in self.secrets:
            for form, needle_text in needles(secret.value):
                for text in (
                    needle_text,
                    needle_text.translate(None, BETWEEN),
                    needle_text.lower(),
                ):
                    if len(text) >= SHORTEST:
                        needle = _Needle(secret=secret, form=form, text=text)
                        self._by_begin.setdefault(text[:SHORTEST], {}).setdefault(text, needle)
        begins = np.frombuffer(b"".join(self._by_begin), np.uint8).reshape(-1, SHORTEST)
        self._begins = np.ascontiguousarray(begins).view("<u8").ravel()
        self._may_begin = np.zeros(1 << 24, np.bool_)
        self._may_begin[_first_three(begins.T)] = True

    def hits(self, data: bytes) -> Iterator[tuple[int, _Needle]]:
        """Where there is a needle, and which; in the order of the places."""
        for start in range(0, len(data) - SHORTEST + 1, PIECE):
            size = min(PIECE + SHORTEST - 1, len(data) - start)
            piece = np.frombuffer(data, np.uint8, size, start)
            windows = sliding_window_view(piece, SHORTEST)
            places = np.flatnonzero(self._may_begin[_first_three(windows.T)])
            words = np.ascontiguousarray(windows[places]).view("<u8").ravel()
            for place in places[np.isin(words, self._begins)].tolist():
                position = start + place
                needles_here = self._by_begin[data[position : position + SHORTEST]]
                yield from (
                    (position, needle)
                    for text, needle in needles_here.items()
                    if data.startswith(text, position)
                )


def _first_three(columns: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    low_bytes, middle_bytes, high_bytes = (columns[column].astype(np.uint32) for column in range(3))
    first: npt.NDArray[np.uint32] = low_bytes | middle_bytes << 8 | high_bytes << 16
    return first


@lru_cache(maxsize=2)  # a server leaves many files
def _search_for(secrets: tuple[Secret, ...]) -> _Search:
    return _Search(secrets)


def _views(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The same bytes as they are, and with what interrupts, quotes or spells a value undone."""
    plain = ZEROS.sub(b"\0", data)
    yield WHOLE, plain
    folded = FOLDS.sub(b"", plain)
    if folded != plain:
        yield FOLDED, folded
    for quotes in (BACKSLASHES, MARKS):
        text = folded
        for _ in range(2):  # %2570 is %70 is p
            quoted, text = text, quotes.sub(_unquoted, text)
            if text == quoted:
                break
            yield "quoted", text
    if b"\\" in folded:
        yield "quoted", OCTAL.sub(_from_octal, folded)
    yield "in pieces", plain.translate(None, BETWEEN)
    yield SMALL, plain.lower()
    yield "as numbers", _numbers(plain)


def _unquoted(match: re.Match[bytes]) -> bytes:
    spelled, pair, decimal, entity, letter = match.groups()
    if pair:
        return bytes.fromhex(pair.decode())
    if entity:
        return ENTITIES[entity]
    if spelled or decimal:
        number = int(spelled, 16) if spelled else int(decimal)
        return chr(number).encode(errors="replace") if number <= sys.maxunicode else match[0]
    return letter or b""  # a quoted letter, or a line that goes on


def _from_octal(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)]) if match[1] else match[2]


def _numbers(data: bytes) -> bytes:
    """What stands there in numbers, a byte each, as dumps and lists write it."""
    texts = {16: bytearray(), 8: bytearray(), 10: bytearray()}
    end = 0
    for run in RUN.finditer(data):
        words = WORD.findall(run[0])
        gap = LINE_END if run.start() - end > DUMP_GAP else b""
        for radix, text in texts.items():
            text.extend(gap + _bytes_of(words, radix))
        end = run.end()
    return LINE_END.join(texts.values())


def _bytes_of(words: Sequence[bytes], radix: int) -> bytes:
    """Nothing where one of them is no byte in that radix."""
    try:
        if radix == 16:
            return bytes.fromhex(b"".join(words).decode()) if all(map(_is_even, words)) else b""
        if radix == 8 and any(len(word) != 3 for word in words):
            return b""
        return bytes(int(word, radix) for word in words)
    except ValueError:
        return b""


def _is_even(word: bytes) -> bool:
    return len(word) % 2 == 0
