"""Secrets are found however they were written down, and nothing else is."""

from __future__ import annotations

import base64
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsvalidate.secret_search import (
    SHORTEST,
    Find,
    Secret,
    SecretKind,
    finds_in,
    new_finds,
    without_secrets,
)

WORD = b'Old-{x}-"Pa55\\w ord+/'
FOLDED = "\n ".join(textwrap.wrap(base64.b64encode(b"x" + WORD).decode(), 11)).encode()
SECRET = Secret(name="the password of uid=a", kind=SecretKind.PASSWORD, value=WORD)
VALUES = st.binary(min_size=SHORTEST, max_size=80).filter(lambda value: value.strip(b"\0") == value)


def forms_of(data: bytes, value: bytes = WORD) -> list[tuple[str, str]]:
    secret = Secret(name="s", kind=SecretKind.PASSWORD, value=value)
    return [(find.place, find.form) for find in finds_in({"log": data}, [secret])]


@pytest.mark.parametrize(
    ("written", "form"),
    [
        (WORD, "as it is"),
        (b"".join(b"\\%02x" % each for each in WORD), "quoted"),
        (b"".join(b"\\x%02X" % each for each in WORD), "quoted"),
        (b"".join(b"%%%02X" % each for each in WORD), "quoted"),
        (WORD.replace(b"\\", b"\\\\").replace(b'"', b'\\"'), "quoted"),
        (WORD.replace(b"{", b"\\7b").replace(b"\\w", b"\\5cw"), "quoted"),
        (WORD[:9] + b"\n " + WORD[9:], "as it is"),
        (WORD.hex().encode(), "as hexadecimal digits"),
        (WORD.hex().upper().encode(), "as hexadecimal digits"),
        (base64.b64encode(WORD), "as base64"),
        (base64.urlsafe_b64encode(WORD), "as base64"),
        (base64.b64encode(b"uid=a " + WORD + b" and more"), "as base64"),
        (base64.encodebytes(b"\xff" * 50 + WORD + b"\xff" * 50), "as base64"),
        (FOLDED, "as base64"),
    ],
)  # fmt: skip
def test_each_way_to_write_it_is_found(written: bytes, form: str) -> None:
    [(place, found)] = forms_of(b"one line\nand then: " + written + b"\nthe end")
    assert found == form
    assert place.startswith("log")


@given(VALUES, st.binary(max_size=40), st.binary(max_size=40))
def test_what_is_there_is_found_whatever_surrounds_it(
    value: bytes, before: bytes, after: bytes
) -> None:
    assert forms_of(before + value + after, value)
    coded = base64.b64encode(before + value + after)
    assert forms_of(coded, value)
    assert forms_of(b"a=" + value.hex().encode() + b";", value)


@given(st.text("abc \n\\%{", max_size=200))
def test_what_is_not_there_is_not_found(text: str) -> None:
    assert not forms_of(text.encode(), b"Canary-9-of-Kw7")


def test_the_line_is_named_and_the_value_never() -> None:
    [find] = finds_in({"errors": b"a\nb\nc " + WORD}, [SECRET])
    assert find.place == "errors, line 3"
    assert str(find) == "errors, line 3: the password of uid=a, as it is"
    assert WORD.decode() not in find.model_dump_json()
    assert WORD.decode() not in repr(SECRET)


@given(VALUES, st.binary(max_size=20))
def test_what_is_shown_of_a_log_has_no_secret(value: bytes, before: bytes) -> None:
    secret = Secret(name="s", kind=SecretKind.PASSWORD, value=value)
    for written in (value, base64.b64encode(before + value), value.hex().encode()):
        shown = without_secrets(b"do_bind - " + written + b" end", [secret])
        assert shown.startswith(b"do_bind - ")
        assert written not in shown


def test_two_lines_are_not_one_value() -> None:
    assert not forms_of(b"Canary-\n9-of-Kw7", b"Canary-9-of-Kw7")


def test_what_is_too_short_turns_up_by_chance() -> None:
    assert not forms_of(b"abcdefg", b"abcdefg")


def test_zeros_of_a_database_file_are_no_obstacle() -> None:
    [(place, _)] = forms_of(b"\0" * 4096 + WORD + b"\0" * 4096)
    assert place == "log, line 1"


def found_at(place: str, kind: SecretKind = SecretKind.PASSWORD) -> Find:
    return Find(place=place, secret="s", kind=kind, form="as it is")


def test_only_what_stock_has_not_in_such_a_place_is_new() -> None:
    stock = [found_at("/var/log/audit.20260101-000000, line 7", SecretKind.HASH)]
    same = found_at("/var/log/audit.20261123-141500, line 9", SecretKind.HASH)
    worse = found_at("/var/log/audit.20261123-141500, line 9")
    elsewhere = found_at("/var/log/errors, line 7", SecretKind.HASH)
    assert new_finds([same, worse, elsewhere], stock) == (worse, elsewhere)
