"""What a guess costs, from stored values as servers write them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model.stored_password import parse_stored
from dsproducts.dirsrv.validation.password_strength import (
    OWASP_ROUNDS,
    alike,
    guess_cost,
    ratio,
    shown,
)


def rust(rounds: int, scheme: str = "PBKDF2-SHA512") -> str:
    return f"{{{scheme}}}{rounds}$c2FsdA$aGFzaA"


def tuned(rounds: int) -> str:
    return "{PBKDF2_SHA256}" + base64.b64encode(rounds.to_bytes(4, "big") + b"x" * 320).decode()


@pytest.mark.parametrize(
    ("value", "cost"),
    [
        (rust(210_000), 1.0),
        (rust(100_000), 100 / 210),
        (rust(600_000, "PBKDF2-SHA256"), 1.0),
        (rust(1_300_000, "PBKDF2-SHA1"), 1.0),
        (tuned(2048), 2048 / 600_000),
        ("{SSHA512}abc", 1 / 210_000),
        ("{SSHA}abc", 1 / 1_300_000),
        ("{crypt}$6$salt$hash", 5000 / 210_000),
        ("{crypt}$6$rounds=210000$salt$hash", 1.0),
        ("{crypt}ab0123456789.", 25 / 1_300_000),
        ("secret", 0.0),
        ("{ARGON2}$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA", 1.0),
    ],
)
def test_cost_in_parts_of_owasps_figure(value: str, cost: float) -> None:
    found = guess_cost(value)
    assert found is not None
    assert found.of_owasp == pytest.approx(cost)


@pytest.mark.parametrize("value", ["{crypt}$y$j9T$salt$hash", "{GOST_YESCRYPT}$gy$x", "{UNKNOWN}x"])
def test_no_figure_is_made_up(value: str) -> None:
    assert guess_cost(value) is None


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_fewer_rounds_of_one_scheme_are_weaker(one: int, other: int) -> None:
    costs = guess_cost(rust(one)), guess_cost(rust(other))
    assert costs[0] is not None
    assert costs[1] is not None
    assert ratio(*costs) == pytest.approx(one / other)


def test_the_published_change_back_is_weaker_by_far() -> None:
    stock, patched = guess_cost(rust(100_000)), guess_cost(tuned(2048))
    assert stock is not None
    assert patched is not None
    assert ratio(patched, stock) == pytest.approx(2048 / 600_000 / (100 / 210))


def test_rounds_that_the_server_tunes_at_each_start_are_alike() -> None:
    stored = [parse_stored(tuned(rounds)) for rounds in (20_000, 23_000, 2048)]
    assert alike(stored[0], stored[1])
    assert not alike(stored[0], stored[2])
    assert not alike(parse_stored(rust(100_000)), parse_stored(rust(99_999)))


def test_a_clear_password_is_no_stronger_than_itself() -> None:
    clear, hashed = guess_cost("secret"), guess_cost("{SSHA}x")
    assert clear is not None
    assert hashed is not None
    assert ratio(clear, clear) == 1.0
    assert shown(ratio(hashed, clear)) == "more than nothing"


def test_fractions_as_people_say_them() -> None:
    assert shown(1 / OWASP_ROUNDS["SHA512"]) == "1/210,000"
    assert shown(0.476) == "0.48"
    assert shown(0) == "0"
