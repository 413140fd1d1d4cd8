"""What one guess of a stored password costs an attacker, in parts of what OWASP asks for.

    cost = rounds / OWASP's rounds for the same hash

OWASP's Password Storage Cheat Sheet holds its three figures for PBKDF2 to be equally strong, so the
quotients of different hashes can be compared. A salted hash without rounds counts as one round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from dsharness.systems.ldap.stored_password import StoredPassword, parse_stored

# Password Storage Cheat Sheet: rounds of PBKDF2 with each hash.
OWASP_ROUNDS = {"SHA512": 210_000, "SHA256": 600_000, "SHA1": 1_300_000}
OWASP_ARGON2 = 2 * 19_456  # rounds times KiB of Argon2id
HASHES = {
    "PBKDF2": "SHA1",  # this Rust scheme is an old name of the next
    "PBKDF2-SHA1": "SHA1",
    "PBKDF2-SHA256": "SHA256",
    "PBKDF2_SHA256": "SHA256",
    "PBKDF2-SHA512": "SHA512",
}
ONCE = {
    "SSHA": "SHA1", "SHA": "SHA1", "SSHA256": "SHA256", "SHA256": "SHA256",
    # SHA-384 is SHA-512, cut; MD5 is cheaper than SHA-1, so this is more than it is.
    "SSHA384": "SHA512", "SHA384": "SHA512", "SSHA512": "SHA512", "SHA512": "SHA512",
    "MD5": "SHA1", "SMD5": "SHA1", "NS-MTA-MD5": "SHA1",
}  # fmt: skip
CRYPT = re.compile(r"^\{crypt\}\$(?P<kind>[156])\$(rounds=(?P<rounds>\d{1,9})\$)?", re.IGNORECASE)
CRYPT_HASHES = {"1": ("SHA1", 1000), "5": ("SHA256", 5000), "6": ("SHA512", 5000)}
DES_ROUNDS = 25  # of the oldest kind, which has no number; as if each were SHA-1
# A server may tune the rounds of this scheme to the machine's speed at each start.
TUNED, TUNED_SHARE = "PBKDF2_SHA256", 0.25


@dataclass(frozen=True, kw_only=True)
class GuessCost:
    """What one guess costs; ``of_owasp`` is a fraction of OWASP's figure for the same hash."""

    stored: StoredPassword
    of_owasp: float
    formula: str


def guess_cost(value: str) -> GuessCost | None:
    """Compute it for a stored value; None where nothing compares with it (yescrypt, GOST)."""
    stored = parse_stored(value)
    if stored.scheme.upper() == "CLEAR":
        return GuessCost(stored=stored, of_owasp=0.0, formula="no guess is needed: it is readable")
    if stored.scheme.upper() == "ARGON2" and stored.rounds and stored.memory_kib:
        work = stored.rounds * stored.memory_kib
        formula = f"{stored.rounds} rounds x {stored.memory_kib} KiB / {OWASP_ARGON2}"
        return GuessCost(stored=stored, of_owasp=work / OWASP_ARGON2, formula=formula)
    known = _hash_and_rounds(value, stored)
    return None if known is None else _cost(stored, *known)


def alike(one: StoredPassword, other: StoredPassword) -> bool:
    """The same scheme and rounds, where the server does not tune them at each start."""
    if one == other:
        return True
    if {one.scheme.upper(), other.scheme.upper()} != {TUNED} or not (one.rounds and other.rounds):
        return False
    return abs(one.rounds - other.rounds) <= TUNED_SHARE * max(one.rounds, other.rounds)


def ratio(patched: GuessCost, stock: GuessCost) -> float:
    """How many times stock's cost the patched one is: below 1 it is weaker."""
    if alike(patched.stored, stock.stored):
        return 1.0
    if stock.of_owasp == 0.0:
        return 1.0 if patched.of_owasp == 0.0 else inf
    return patched.of_owasp / stock.of_owasp


def shown(number: float) -> str:
    """Write a fraction as people say it: 0.0000048 is `1/210,000`."""
    if number == inf:
        return "more than nothing"
    if number == 0.0:
        return "0"
    if number < 0.1:
        return f"1/{1 / number:,.0f}"
    return f"{number:.2f}"


def _hash_and_rounds(value: str, stored: StoredPassword) -> tuple[str, int] | None:
    scheme = stored.scheme.upper()
    if scheme in HASHES and stored.rounds is not None:
        return HASHES[scheme], stored.rounds
    if scheme in ONCE:
        return ONCE[scheme], 1
    crypt = CRYPT.match(value)
    if crypt is not None:
        name, rounds = CRYPT_HASHES[crypt["kind"]]
        return name, int(crypt["rounds"] or rounds)
    return ("SHA1", DES_ROUNDS) if scheme == "CRYPT" and "$" not in value else None


def _cost(stored: StoredPassword, hash_name: str, rounds: int) -> GuessCost:
    wanted = OWASP_ROUNDS[hash_name]
    formula = f"{rounds:,} / {wanted:,} ({hash_name})"
    return GuessCost(stored=stored, of_owasp=rounds / wanted, formula=formula)
