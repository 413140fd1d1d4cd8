"""Passwords that the lab hashes itself have the form that 389-ds reads."""

from __future__ import annotations

import base64
import hashlib

import pytest

from dsharness.errors import InstanceError
from dsharness.model.stored_password import parse_stored
from dsproducts.dirsrv.password_trials import hashed_value


@pytest.mark.parametrize(
    "scheme", ["PBKDF2_SHA256", "PBKDF2-SHA1", "PBKDF2-SHA256", "PBKDF2-SHA512"]
)
def test_scheme_and_rounds_are_read_back(scheme: str) -> None:
    stored = parse_stored(hashed_value("secret", scheme, 2048))
    assert (stored.scheme, stored.rounds) == (scheme, 2048)


def test_the_c_scheme_derives_eight_blocks() -> None:
    raw = base64.b64decode(hashed_value("secret", "PBKDF2_SHA256", 5).partition("}")[2])
    rounds, salt, made = raw[:4], raw[4:68], raw[68:]
    assert (int.from_bytes(rounds), len(made)) == (5, 256)
    assert made == hashlib.pbkdf2_hmac("sha256", b"secret", salt, 5, 256)


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(InstanceError, match="how SSHA512 stores a number of rounds is not known"):
        hashed_value("secret", "SSHA512", 1)
