"""A stored password: its scheme and its amount of work, read from the value."""

from __future__ import annotations

import base64
import re

from dsharness.model.measured import Facts
from dsharness.model.value import Value

# As facts.
SCHEME, ROUNDS, MEMORY = "password-scheme", "password-rounds", "password-memory-kib"

_VALUE = re.compile(r"^\{(?P<scheme>[!-|~]{1,64})\}(?P<rest>.*)$", re.DOTALL)
_COUNT = re.compile(r"[0-9]{1,10}(?=\$)")
_ARGON2 = re.compile(r"\$argon2\w*\$(?:v=\d+\$)?m=(?P<memory>\d{1,10}),t=(?P<rounds>\d{1,10}),p=")


class StoredPassword(Value):
    """What the running server really stores, read back and not assumed."""

    scheme: str
    rounds: int | None = None
    memory_kib: int | None = None  # that each round goes over, where the scheme has it

    def __str__(self) -> str:
        rounds = f" with {self.rounds} rounds" if self.rounds else ""
        return self.scheme + rounds + (f" over {self.memory_kib} KiB" if self.memory_kib else "")

    @property
    def facts(self) -> Facts:
        facts = {SCHEME: self.scheme, ROUNDS: self.rounds, MEMORY: self.memory_kib}
        return {name: value for name, value in facts.items() if value is not None}


def stored_in(facts: Facts) -> StoredPassword | None:
    """Return None if there is no stored password: no directory server, or one by address."""
    if SCHEME not in facts:
        return None
    return StoredPassword(
        scheme=str(facts[SCHEME]), rounds=_number(facts, ROUNDS), memory_kib=_number(facts, MEMORY)
    )


def parse_stored(value: str) -> StoredPassword:
    """Return the scheme and, where the value spells them, the rounds; a bare value is CLEAR."""
    match = _VALUE.match(value)
    if match is None:
        return StoredPassword(scheme="CLEAR")
    scheme, rest = match["scheme"], match["rest"]
    argon2 = _ARGON2.match(rest) if scheme.upper() == "ARGON2" else None
    if argon2 is not None:
        return StoredPassword(
            scheme=scheme, rounds=int(argon2["rounds"]), memory_kib=int(argon2["memory"])
        )
    return StoredPassword(scheme=scheme, rounds=_rounds(scheme.upper(), rest))


def _rounds(scheme: str, rest: str) -> int | None:
    if scheme == "PBKDF2_SHA256":  # the C scheme: big-endian count in the first four bytes
        try:
            block = base64.b64decode(rest[:8], validate=True)
        except ValueError:
            return None
        return int.from_bytes(block[:4], "big") if len(block) >= 4 else None
    if scheme.startswith("PBKDF2"):  # others: decimal before the first dollar
        count = _COUNT.match(rest)
        return int(count[0]) if count else None
    return None


def _number(facts: Facts, name: str) -> int | None:
    value = facts.get(name)
    return int(value) if value is not None else None
