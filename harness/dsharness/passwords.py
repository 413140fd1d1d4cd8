"""Reading a stored password: which scheme, how many rounds. 389-ds keeps both in the value."""

from __future__ import annotations

import base64
import binascii
import re

from dsharness.model import StoredPassword

_VALUE = re.compile(r"^\{(?P<scheme>[^}]+)\}(?P<rest>.*)$", re.DOTALL)


def parse_stored(value: str) -> StoredPassword:
    """The scheme and, where the value spells them, the rounds; a bare value is CLEAR."""
    match = _VALUE.match(value)
    if match is None:
        return StoredPassword(scheme="CLEAR")
    scheme, rest = match["scheme"], match["rest"]
    return StoredPassword(scheme=scheme, rounds=_rounds(scheme.upper(), rest))


def _rounds(scheme: str, rest: str) -> int | None:
    if scheme == "PBKDF2_SHA256":  # the C scheme: big-endian count in the first four bytes
        try:
            return int.from_bytes(base64.b64decode(rest[:8], validate=True)[:4], "big")
        except binascii.Error:
            return None
    if scheme.startswith("PBKDF2"):  # the Rust schemes: decimal before the first dollar
        head = rest.partition("$")[0]
        return int(head) if head.isdigit() else None
    return None
