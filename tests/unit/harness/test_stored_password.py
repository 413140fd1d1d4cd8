"""Both ways in which 389-ds writes the number of rounds are read back."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model.stored_password import StoredPassword, parse_stored, stored_in

C_SALT, C_HASH = 64, 256  # bytes, in the C scheme's one base64 block


@given(
    st.integers(0, 2**32 - 1),
    st.binary(min_size=C_SALT, max_size=C_SALT),
    st.binary(min_size=C_HASH, max_size=C_HASH),
)
def test_the_c_scheme_keeps_its_rounds_in_four_bytes(rounds: int, salt: bytes, hsh: bytes) -> None:
    block = base64.b64encode(rounds.to_bytes(4, "big") + salt + hsh).decode()
    expected = StoredPassword(scheme="PBKDF2_SHA256", rounds=rounds)
    assert parse_stored("{PBKDF2_SHA256}" + block) == expected


@given(
    st.sampled_from(["PBKDF2-SHA1", "PBKDF2-SHA256", "PBKDF2-SHA512", "PBKDF2"]),
    st.integers(0, 10**7),
    st.binary(min_size=1, max_size=64),
    st.binary(min_size=1, max_size=64),
)
def test_the_rust_schemes_keep_theirs_before_the_dollar(
    scheme: str, rounds: int, salt: bytes, hsh: bytes
) -> None:
    parts = [str(rounds), *(base64.b64encode(part).decode().rstrip("=") for part in (salt, hsh))]
    assert parse_stored(f"{{{scheme}}}{'$'.join(parts)}") == StoredPassword(
        scheme=scheme, rounds=rounds
    )


@pytest.mark.parametrize(
    ("value", "scheme", "rounds"),
    [
        # 2,048 rounds as Debian 11's 1.4.4.11 stores them, cut after the salt's first bytes
        ("{PBKDF2_SHA256}AAAIAGkx", "PBKDF2_SHA256", 2048),
        ("{PBKDF2-SHA512}10000$/imGyx4pxuFySOAtzm7C$ncPY6JDW6eA8", "PBKDF2-SHA512", 10_000),
        ("{PBKDF2-SHA512}100000$abc$def", "PBKDF2-SHA512", 100_000),
        ("{pbkdf2-sha512}10000$a$b", "pbkdf2-sha512", 10_000),
        ("{SSHA512}dWV5dQ==", "SSHA512", None),
        ("{CRYPT-SHA512}$6$salt$hash", "CRYPT-SHA512", None),
        ("{GOST_YESCRYPT}$gy$j9T$salt$hash", "GOST_YESCRYPT", None),
        # as OpenLDAP 2.5.13 stores it, cut
        ("{PBKDF2-SHA512}10000$E4BYVvsNd1mBbraJ4Z8CGg$xH8g9SuK.mH5", "PBKDF2-SHA512", 10_000),
        ("{ARGON2}many$a$b", "ARGON2", None),
        ("plain", "CLEAR", None),
        ("", "CLEAR", None),
        ("{}nothing", "CLEAR", None),
        ("{PBKDF2_SHA256}****", "PBKDF2_SHA256", None),
        ("{PBKDF2_SHA256}AAA=", "PBKDF2_SHA256", None),
        ("{PBKDF2_SHA256}é", "PBKDF2_SHA256", None),
        ("{PBKDF2-SHA512}many$a$b", "PBKDF2-SHA512", None),
        ("{PBKDF2-SHA512}²$a$b", "PBKDF2-SHA512", None),
        ("{PBKDF2-SHA512}" + "9" * 5000 + "$a$b", "PBKDF2-SHA512", None),
        ("{SSHA}line\nbreak", "SSHA", None),
    ],
)
def test_values_as_they_are_met(value: str, scheme: str, rounds: int | None) -> None:
    assert parse_stored(value) == StoredPassword(scheme=scheme, rounds=rounds)


@given(st.text())
def test_any_value_has_a_scheme(value: str) -> None:
    assert parse_stored(value).scheme


@given(st.sampled_from(["PBKDF2_SHA256", "PBKDF2-SHA512", "SSHA512"]), st.text())
def test_a_broken_value_keeps_its_scheme(scheme: str, rest: str) -> None:
    assert parse_stored(f"{{{scheme}}}{rest}").scheme == scheme


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (StoredPassword(scheme="PBKDF2-SHA512", rounds=10_000), "PBKDF2-SHA512 with 10000 rounds"),
        (StoredPassword(scheme="SSHA512"), "SSHA512"),
    ],
)
def test_a_stored_password_in_words_and_as_facts(stored: StoredPassword, words: str) -> None:
    assert str(stored) == words
    assert stored_in(stored.facts) == stored
    assert stored_in({"version": "1"}) is None


# As slapd stores them with its defaults, cut: Debian 11 and 12, then Debian 13.
@pytest.mark.parametrize(
    ("value", "rounds", "memory_kib"),
    [
        ("{ARGON2}$argon2i$v=19$m=4096,t=3,p=1$GAq+QhkdB9Dw$h+PZjFVUZlbZ", 3, 4096),
        ("{ARGON2}$argon2id$v=19$m=7168,t=5,p=1$6atg0S+JB6N4$YKrN2zwM2Twt", 5, 7168),
    ],
)
def test_argon2_says_how_often_it_goes_over_how_much_memory(
    value: str, rounds: int, memory_kib: int
) -> None:
    stored = parse_stored(value)
    assert stored == StoredPassword(scheme="ARGON2", rounds=rounds, memory_kib=memory_kib)
    assert stored_in(stored.facts) == stored
    assert str(stored) == f"ARGON2 with {rounds} rounds over {memory_kib} KiB"
