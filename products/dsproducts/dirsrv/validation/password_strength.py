"""How passwords are stored, in stock and patched: new ones, and those that stock stored before.

What a guess of one costs an attacker is compared, in parts of what OWASP asks for:

    cost = rounds / OWASP's rounds for the same hash

OWASP's Password Storage Cheat Sheet holds its three figures for PBKDF2 to be equally strong, so the
quotients of different hashes can be compared. A salted hash without rounds counts as one round.
An existing password may become another at its owner's next bind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from dsharness.model.stored_password import StoredPassword, parse_stored
from dsproducts.dirsrv.validation.populated_image import populated
from dsproducts.dirsrv.validation.population import SchemeUser
from dsproducts.dirsrv.validation.validated_server import ValidatedServer, validated_server
from dsvalidate.check import Check, Figure, Gate, Status
from dsvalidate.step_tools import Sides, StepTools

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
    "SSHA": "SHA1",
    "SHA": "SHA1",
    "SSHA256": "SHA256",
    "SHA256": "SHA256",
    # SHA-384 is SHA-512, cut; MD5 is cheaper than SHA-1, so this is more than it is.
    "SSHA384": "SHA512",
    "SHA384": "SHA512",
    "SSHA512": "SHA512",
    "SHA512": "SHA512",
    "MD5": "SHA1",
    "SMD5": "SHA1",
    "NS-MTA-MD5": "SHA1",
}
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
    hash_and_rounds = _hash_and_rounds(value, stored)
    return None if hash_and_rounds is None else _cost(stored, *hash_and_rounds)


def alike(first: StoredPassword, second: StoredPassword) -> bool:
    """The same scheme and rounds, where the server does not tune them at each start."""
    if first == second:
        return True
    if {first.scheme.upper(), second.scheme.upper()} != {TUNED} or not (
        first.rounds and second.rounds
    ):
        return False
    return abs(first.rounds - second.rounds) <= TUNED_SHARE * max(first.rounds, second.rounds)


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
    recommended = OWASP_ROUNDS[hash_name]
    formula = f"{rounds:,} / {recommended:,} ({hash_name})"
    return GuessCost(stored=stored, of_owasp=rounds / recommended, formula=formula)


DEFAULT = "default"
SLACK = 0.999  # a ratio is a quotient of floats
ACCEPT = (
    "--accept-weaker accepts it, and the report then says that it was accepted. Otherwise choose "
    "more rounds or a stronger scheme."
)
GONE = "Password policies that name a scheme that is gone stop working."
FORMULA = (
    "cost of a guess = rounds / OWASP's rounds for the same hash (PBKDF2 with HMAC-SHA512 210,000; "
    "SHA256 600,000; SHA1 1,300,000); a salted hash without rounds counts as one round"
)


def strength_checks(sides: Sides, tools: StepTools, *, accept_weaker: bool) -> Sequence[Check]:
    """Compare what running servers wrote for users of every scheme."""
    stock = values_of(populated(tools, sides.stock).population.users)
    patched = values_of(populated(tools, sides.patched).population.users)
    return [
        default_check(stock[DEFAULT], patched[DEFAULT], accepted=accept_weaker),
        schemes_check(stock, patched, accepted=accept_weaker),
    ]


def values_of(users: Iterable[SchemeUser]) -> dict[str, str]:
    """Scheme -> what the server stores under it."""
    return {user.scheme: user.stored for user in users}


def default_check(stock_value: str, patched_value: str, *, accepted: bool) -> Check:
    """Compare new passwords as an administrator gets them who sets nothing."""
    stock, patched = guess_cost(stock_value), guess_cost(patched_value)
    if stock is None or patched is None:
        return _unknown(stock_value, patched_value)
    times = ratio(patched, stock)
    in_stock = "the same as" if times == 1.0 else f"{shown(times)} of what it costs"
    sentence = (
        f"new passwords: stock stores {stock.stored}, patched {patched.stored}; a guess costs "
        f"{in_stock} in stock, and {shown(patched.of_owasp)} of OWASP's figure "
        f"(stock: {shown(stock.of_owasp)})"
    )
    figures: dict[str, Figure] = {
        "stock": str(stock.stored),
        "patched": str(patched.stored),
        "guess_of_stock": _figure(times),
        "guess_of_owasp": _figure(patched.of_owasp),
        "stock_guess_of_owasp": _figure(stock.of_owasp),
    }
    weaker = times < SLACK
    status = _status(weaker=weaker, accepted=accepted)
    return Gate.SAFE.check(
        "new-passwords",
        status,
        _said(sentence, weaker=weaker, accepted=accepted),
        figures=figures,
        advice=_advice(status),
        details=(FORMULA, f"stock: {stock.formula}", f"patched: {patched.formula}"),
    )


def schemes_check(stock: Mapping[str, str], patched: Mapping[str, str], *, accepted: bool) -> Check:
    """Compare all other schemes, which a password policy may name."""
    weaker = tuple(weaker_schemes(stock, patched))
    removed = sorted(stock.keys() - patched.keys())
    status = _status(weaker=bool(weaker), accepted=accepted)
    if status is Status.PASSED and removed:
        status = Status.WARNED
    words = [f"{len(weaker)} schemes are weaker than in stock" if weaker else "none is weaker"]
    words += [f"{', '.join(removed)} cannot be chosen any more"] if removed else []
    sentence = f"of {len(stock) - 1} schemes that a policy can name, {'; '.join(words)}"
    return Gate.SAFE.check(
        "other-schemes",
        status,
        _said(sentence, weaker=bool(weaker), accepted=accepted),
        advice=_advice(status, otherwise=GONE if removed else ""),
        details=(*weaker, *scheme_table(stock, patched)),
        figures={"weaker": len(weaker)},
    )


def weaker_schemes(stock: Mapping[str, str], patched: Mapping[str, str]) -> Iterator[str]:
    """One line for each scheme of both that now costs an attacker less."""
    for scheme in sorted((stock.keys() & patched.keys()) - {DEFAULT}):
        before, after = guess_cost(stock[scheme]), guess_cost(patched[scheme])
        if before and after and ratio(after, before) < SLACK:
            times = shown(ratio(after, before))
            yield f"{scheme}: {after.stored}, a guess costs {times} of stock's {before.stored}"


def scheme_table(stock: Mapping[str, str], patched: Mapping[str, str]) -> Iterator[str]:
    """One line for each scheme: how it stores, and its part of OWASP's figure."""
    for scheme in sorted((stock.keys() | patched.keys()) - {DEFAULT}):
        values = (stock.get(scheme), patched.get(scheme))
        before, after = (_in_words(value) for value in values)
        yield f"{scheme}: {before}" if before == after else f"{scheme}: {before}; patched: {after}"


def _in_words(value: str | None) -> str:
    if value is None:
        return "not offered"
    cost: GuessCost | None = guess_cost(value)
    part = "no figure" if cost is None else f"{shown(cost.of_owasp)} of OWASP's figure"
    return f"{parse_stored(value)}, {part}"


def _unknown(stock_value: str, patched_value: str) -> Check:
    stock, patched = parse_stored(stock_value), parse_stored(patched_value)
    is_same = alike(stock, patched) and guess_cost(stock_value) is guess_cost(patched_value) is None
    return Gate.SAFE.check(
        "new-passwords",
        Status.PASSED if is_same else Status.INCONCLUSIVE,
        f"new passwords: stock stores {stock}, patched {patched}; what a guess costs there "
        "is not known",
        advice="Compare the two schemes yourself: there is no common figure.",
        figures={"stock": str(stock), "patched": str(patched)},
    )


def _status(*, weaker: bool, accepted: bool) -> Status:
    if not weaker:
        return Status.PASSED
    return Status.WARNED if accepted else Status.FAILED


def _said(sentence: str, *, weaker: bool, accepted: bool) -> str:
    return f"{sentence}; this was accepted by --accept-weaker" if weaker and accepted else sentence


def _advice(status: Status, otherwise: str = "") -> str:
    if status is Status.FAILED:
        return f"Passwords become easier to guess for whoever steals the database. {ACCEPT}"
    return otherwise if status is Status.WARNED else ""


def _figure(number: float) -> Figure:
    return float(f"{number:.4g}")


STORED_AGAIN = (
    "By default 389-ds stores a password again when its owner binds and the default scheme is "
    "another one. To keep the stronger values: nsslapd-enable-upgrade-hash: off in cn=config "
    "before the upgrade, or name their scheme in nsslapd-scheme-list-no-upgrade-hash."
)
EXISTING = "existing-passwords"


def existing_checks(sides: Sides, tools: StepTools) -> Sequence[Check]:
    """Put a value that stock wrote into the patched server, and bind as its owner."""
    users = populated(tools, sides.stock).population.users
    old = next(user for user in users if user.scheme == DEFAULT)
    with validated_server(
        tools, populated(tools, sides.patched).reference, purpose=EXISTING
    ) as server:
        server.start()
        after_bind = _after_bind(server, old.stored, old.password)
        server.stop()
    return [existing_check(values_of(users)[DEFAULT], after_bind)]


def existing_check(before: str, after: str) -> Check:
    """Whether the value is still the one that stock wrote after its owner has bound."""
    old, new = parse_stored(before), parse_stored(after)
    if before == after:
        sentence = (
            f"passwords that stock stored by default ({old}) stay as they are until their owners "
            "change them: the patch makes them neither weaker nor faster"
        )
        return Gate.SAFE.check(EXISTING, Status.PASSED, sentence)
    costs = guess_cost(before), guess_cost(after)
    times = ratio(costs[1], costs[0]) if costs[0] and costs[1] else None
    weaker = times is not None and times < SLACK
    words = f", {shown(times)} of the cost of a guess" if times is not None else ""
    return Gate.SAFE.check(
        EXISTING,
        Status.WARNED if weaker else Status.PASSED,
        f"a password that stock stored as {old} becomes {new} when its owner binds{words}",
        advice=STORED_AGAIN,
    )


def _after_bind(server: ValidatedServer, stored: str, password: str) -> str:
    dn = f"uid=from-stock,{server.site.people}"
    classes = ["top", "person", "organizationalPerson", "inetOrgPerson"]
    names = {"uid": ["from-stock"], "cn": ["a"], "sn": ["b"], "userPassword": [stored]}
    with server.manager() as directory:
        directory.add(dn, {"objectClass": classes, **names})
        server.binds(dn, password)
        return directory.read(dn, "userPassword").get("userPassword", [""])[0]
