"""Where secrets turn up in bytes: as they are, quoted, as base64, as hexadecimal digits. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dsharness.model import Value

SHORTEST = 8  # bytes: a shorter one turns up by chance
ZEROS = re.compile(rb"\0{64,}")
FOLDS = re.compile(rb"\r?\n ")  # of LDIF, inside a value
LINE_ENDS = re.compile(rb"\r?\n ?")  # of base64 in lines
# \7b as LDAP writes a byte in a DN or a filter, \x7b as C does, %7B as a URL does, \" and \\.
QUOTED = re.compile(rb"(?:\\x?|%)([0-9A-Fa-f]{2})|\\([^0-9A-Fa-f])")
DIGITS = re.compile(r"\d+")


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
    known = [
        (secret, tuple(needles(secret.value)))
        for secret in secrets
        if len(secret.value) >= SHORTEST
    ]
    for place, data in parts.items():
        views = _Views(data)
        for secret, forms in known:
            found = next((f for f in (views.found(*each) for each in forms) if f), None)
            if found:
                form, line = found
                yield Find(place=place + line, secret=secret.name, kind=secret.kind, form=form)


def without_secrets(data: bytes, secrets: Iterable[Secret]) -> bytes:
    """Leave out each secret, in every form in which it is found as it stands."""
    for secret in secrets:
        if len(secret.value) >= SHORTEST:
            for _, needle in needles(secret.value):
                data = data.replace(needle, "…".encode())
    return data


def new_finds(patched: Iterable[Find], stock: Iterable[Find]) -> tuple[Find, ...]:
    """Return what stock has not: no secret of this kind in a place of this name."""
    known = {find.like for find in stock}
    return tuple(find for find in patched if find.like not in known)


def needles(value: bytes) -> Iterator[tuple[str, bytes]]:
    """Form and bytes of each way to write a value; base64 depends on what stands before it."""
    yield "as it is", value
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + value)
        begin = -(-8 * before // 6)
        inner = coded[begin : 8 * (before + len(value)) // 6]
        yield "as base64", inner
        if inner.translate(URL_SAFE) != inner:
            yield "as base64", inner.translate(URL_SAFE)
    yield "as hexadecimal digits", value.hex().encode()
    yield "as hexadecimal digits", value.hex().upper().encode()


URL_SAFE = bytes.maketrans(b"+/", b"-_")


class _Views:
    """The same bytes as they are, and with what interrupts or quotes a value undone."""

    def __init__(self, data: bytes) -> None:
        self._whole = data
        plain = ZEROS.sub(b"\0", data)
        views = {"": plain, "in lines": LINE_ENDS.sub(b"", plain), "folded": FOLDS.sub(b"", plain)}
        if b"\\" in plain or b"%" in plain:
            views["quoted"] = QUOTED.sub(_unquoted, views["folded"])
        self._views = {name: view for name, view in views.items() if name == "" or view != plain}

    def found(self, form: str, needle: bytes) -> tuple[str, str] | None:
        """Form and line, if it is there in any view."""
        for name, view in self._views.items():
            if name == "in lines" and form == "as it is":
                continue  # two lines that follow each other are not one value
            if needle in view:
                words = "quoted" if (name, form) == ("quoted", "as it is") else form
                at = self._whole.find(needle)
                line = self._whole.count(b"\n", 0, at) + 1
                return words, f", line {line}" if at >= 0 else ""
        return None


def _unquoted(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[1].decode()) if match[1] else match[2]
