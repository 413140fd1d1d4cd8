"""A stored password: which scheme, how many rounds, as the value itself tells."""

from __future__ import annotations

import base64
import re

from dsharness.model import Facts, Value

SCHEME, ROUNDS = "password-scheme", "password-rounds"  # as facts

_VALUE = re.compile(r"^\{(?P<scheme>[^}]+)\}(?P<rest>.*)$", re.DOTALL)
_COUNT = re.compile(r"[0-9]{1,10}(?=\$)")


class StoredPassword(Value):
    """What the running server really stores, read back and not assumed."""

    scheme: str
    rounds: int | None = None

    def __str__(self) -> str:
        return self.scheme + (f" with {self.rounds} rounds" if self.rounds else "")

    @property
    def facts(self) -> Facts:
        rounds: Facts = {} if self.rounds is None else {ROUNDS: self.rounds}
        return {SCHEME: self.scheme, **rounds}


def stored_in(facts: Facts) -> StoredPassword | None:
    """None where nothing is said of passwords: no directory, or one by address."""
    if SCHEME not in facts:
        return None
    rounds = facts.get(ROUNDS)
    return StoredPassword(
        scheme=str(facts[SCHEME]), rounds=int(rounds) if rounds is not None else None
    )


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
            block = base64.b64decode(rest[:8], validate=True)
        except ValueError:
            return None
        return int.from_bytes(block[:4], "big") if len(block) >= 4 else None
    if scheme.startswith("PBKDF2"):  # the Rust schemes: decimal before the first dollar
        count = _COUNT.match(rest)
        return int(count[0]) if count else None
    return None
