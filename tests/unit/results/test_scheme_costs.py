"""The table of a row's password schemes: what a bind costs, and how OWASP's figures judge it."""

from __future__ import annotations

import pytest
from worlds import sample_of

from dsharness.systems.system import OfferedScheme
from dsresults.explainers.password_explainer import hashing_of
from dsresults.explainers.scheme_costs import (
    MeasuredScheme,
    SchemeCost,
    scheme_costs,
    users_for,
)

SHA512 = {"password-scheme": "PBKDF2-SHA512", "password-rounds": 110_000}


def measured(name: str, facts: dict, *costs: float, **more: object) -> MeasuredScheme:
    """Runs of so many ms; the calibrator's unit is 1 ms."""
    offered = OfferedScheme(name=name, options={"password-scheme": name}, **more)
    stored = {"password-scheme": name, **facts}
    runs = tuple(sample_of("r", cost, turn, facts=stored) for turn, cost in enumerate(costs))
    return MeasuredScheme(offered=offered, users=200, samples=runs)


def table(*given: MeasuredScheme, default: str = "", product: str = "389-ds"):
    lines = scheme_costs("r", product, given, default)
    return {line.scheme: line for line in lines}


def judged(name: str, product: str = "389-ds", **facts: int) -> SchemeCost:
    return table(measured(name, facts and {f"password-{k}": v for k, v in facts.items()}, 5.0),
                 product=product)[name]  # fmt: skip


def test_each_scheme_is_set_against_the_default() -> None:
    lines = table(
        measured("CLEAR", {}, 1.0, readable=True),
        measured("PBKDF2-SHA512", SHA512, 38.0, 41.0, 44.0),
        measured("SSHA512", {}, 2.0, 2.05, 2.1),
        default="PBKDF2-SHA512",
    )
    assert list(lines) == ["PBKDF2-SHA512", "CLEAR", "SSHA512"], "the default, then by cost"
    default = lines["PBKDF2-SHA512"]
    assert default.default
    assert (default.cpu_ms, default.cpu_ms_range, default.of_default) == (41.0, (38.0, 44.0), 1.0)
    assert default.cost == "41.0 ms (38.0 to 44.0)"
    assert default.stored_as == "PBKDF2-SHA512, 110,000 rounds"
    assert lines["SSHA512"].of_default == pytest.approx(0.05)
    assert lines["CLEAR"].per_cpu_s == 1000


def test_what_the_missing_rounds_would_cost_is_computed_without_the_rest_of_a_bind() -> None:
    """Twice the rounds are twice the hash, and the same connection."""
    line = table(
        measured("CLEAR", {}, 1.0, readable=True), measured("PBKDF2-SHA512", SHA512, 41.0)
    )["PBKDF2-SHA512"]
    assert line.recommended_ms == pytest.approx(1 + 2 * 40)
    rounds = "220,000 rounds"
    assert line.verdict == (
        f"below {rounds} of PBKDF2-HMAC-SHA512; about 81.0 ms at {rounds} (computed)"
    )
    assert line.accepted is False


@pytest.mark.parametrize(
    ("name", "facts", "accepted", "words"),
    [
        ("PBKDF2-SHA512", {"rounds": 220_000}, True, "at least 220,000 rounds"),
        ("PBKDF2_SHA256", {"rounds": 599_999}, False, "below 600,000 rounds of PBKDF2-HMAC-SHA256"),
        ("PBKDF2", {"rounds": 1_400_000}, True, "PBKDF2-HMAC-SHA1, for old systems only"),
        ("SSHA512", {}, False, "a fast hash"),
        ("CRYPT-YESCRYPT", {}, None, "not named by OWASP"),
    ],
)
def test_owasp_judges_what_is_stored(
    name: str, facts: dict, accepted: bool | None, words: str
) -> None:
    line = judged(name, **facts)
    assert line.accepted is accepted
    assert words in line.verdict


def test_memory_counts_with_the_rounds() -> None:
    """Any of OWASP's settings of Argon2id is enough; OpenLDAP 2.6 has the one of least memory."""
    kib = "memory-kib"
    assert judged("ARGON2", "openldap", rounds=5, **{kib: 7168}).accepted
    weak = judged("ARGON2", "openldap", rounds=3, **{kib: 4096})
    assert weak.accepted is False
    assert weak.recommended_ms == pytest.approx(5.0 * 2 * 19_456 / (3 * 4096))


def test_what_can_be_read_back_is_never_recommended() -> None:
    line = table(measured("AES", {}, 1.0, readable=True))["AES"]
    assert (line.accepted, line.verdict) == (False, "can be read back: never acceptable")


def test_a_refusal_is_an_answer_and_a_failure_is_not() -> None:
    offered = OfferedScheme(name="NS-MTA-MD5", options={}, refused="it only compares")
    failed = OfferedScheme(name="SSHA", options={})
    lines = table(
        MeasuredScheme(offered=offered), MeasuredScheme(offered=failed, failed="no answer; log: x")
    )
    assert lines["NS-MTA-MD5"].stored_as == "cannot store"
    assert lines["NS-MTA-MD5"].verdict == "it only compares"
    assert not lines["NS-MTA-MD5"].failed
    assert (lines["SSHA"].stored_as, lines["SSHA"].failed) == ("not measured", "no answer; log: x")


@pytest.mark.parametrize(
    ("scheme", "nss", "users"),
    [
        ("PBKDF2_SHA256", "3.110", 1500),
        ("PBKDF2_SHA256", "3.61", 200),
        ("PBKDF2-SHA512", "3.110", 200),
    ],
)
def test_there_are_more_users_than_results_are_kept(scheme: str, nss: str, users: int) -> None:
    assert users_for("389-ds", scheme, {"nss": nss}, 200) == users


@pytest.mark.parametrize("product", ["389-ds", "openldap"])
def test_both_products_have_the_same_recommendation(product: str) -> None:
    found, other = hashing_of(product).recommended, hashing_of("389-ds").recommended
    assert found is not None
    assert other is not None
    assert (found.title, found.date, found.address) == (other.title, other.date, other.address)
    rounds = {least.hash: least.rounds for least in other.least}
    assert {each.hash: each.rounds for each in found.least}.items() >= rounds.items()
