"""Secrets are found however they were written down, and nothing else is."""

from __future__ import annotations

import base64
import textwrap
import time
from typing import Any

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


def parts_of(whole: Any, size: int) -> list[Any]:
    return [whole[at : at + size] for at in range(0, len(whole), size)]


VALUES = st.binary(min_size=SHORTEST, max_size=80).filter(lambda value: value.strip(b"\0") == value)


def forms_of(data: bytes, value: bytes = WORD) -> list[tuple[str, str]]:
    secret = Secret(name="s", kind=SecretKind.PASSWORD, value=value)
    return [(find.place, find.form) for find in finds_in({"log": data}, [secret])]


HEX = WORD.hex()
PAIRS = parts_of(HEX, 2)


def dump(form: str) -> bytes:
    """As programs print bytes: an address, numbers, and the letters."""
    lines = []
    for at, pairs in enumerate(parts_of(PAIRS, 16)):
        letters = "".join(chr(int(each, 16)) for each in pairs)
        four = " ".join("".join(each) for each in parts_of(pairs, 2))
        halves = [" ".join(each) for each in parts_of(pairs, 8)]
        lines.append(
            form.format(
                at=16 * at, four=four, halves="  ".join(halves), dash="-".join(halves),
                letters=letters,
            )
        )  # fmt: skip
    return "\n".join(lines).encode()


SPELLINGS = {
    "UTF-16, the low byte first": WORD.decode().encode("utf-16-le"),
    "UTF-16, the high byte first": WORD.decode().encode("utf-16-be"),
    "UTF-32": WORD.decode().encode("utf-32-be"),
    "JSON": b"".join(b"\\u%04x" % each for each in WORD),
    "JSON, some letters": WORD.replace(b"\\", b"\\\\").replace(b"O", b"\\u004F"),
    "JavaScript": b"".join(b"\\u{%x}" % each for each in WORD),
    "octal of C": b"".join(b"\\%03o" % each for each in WORD),
    "octal, some letters": WORD.replace(b"\\", b"\\\\").replace(b" ", b"\\040"),
    "URL, twice": b"".join(b"%%25%02X" % each for each in WORD),
    "URL, some letters": WORD.replace(b" ", b"%20").replace(b"+", b"%2B"),
    "URL of base64": base64.b64encode(b"ui" + WORD).replace(b"/", b"%2F").replace(b"+", b"%2B"),
    "mail": b"".join(b"=%02X" % each for each in WORD[:9]) + b"=\n" + WORD[9:],
    "HTML": b"".join(b"&#%d;" % each for each in WORD),
    "HTML, hexadecimal": b"".join(b"&#x%x;" % each for each in WORD),
    "XML": WORD.replace(b'"', b"&quot;"),
    "two lines": WORD[:9] + b"\n" + WORD[9:],
    "two lines, the second further in": WORD[:9] + b"\r\n\t  " + WORD[9:],
    "letters apart": b" ".join(b"%c" % each for each in WORD),
    "a list of letters": b", ".join(b"'%c'" % each for each in WORD),
    "small letters": WORD.lower(),
    "a dump of OpenLDAP's library": dump("  {at:04x}:  {halves}   {letters}"),
    "hexdump -C": dump("{at:08x}  {halves}  |{letters}|"),
    "xxd": dump("{at:08x}: {four}  {letters}"),
    "openssl's dump": dump("{at:04x} - {dash}   {letters}"),
    "bytes apart": " ".join(PAIRS).encode(),
    "bytes with colons": ":".join(PAIRS).upper().encode(),
    "bytes of C": ", ".join(f"0x{each}" for each in PAIRS).encode(),
    "od -b": " ".join(f"{each:03o}" for each in WORD).encode(),
    "numbers": str(list(WORD)).encode(),
    "large and small digits": f"{HEX[:9].upper()}{HEX[9:]}".encode(),
    "base64 of UTF-16": base64.b64encode(b"x" + WORD.decode().encode("utf-16-le")),
    "base64 with gaps": b" ".join(parts_of(base64.b64encode(b"xy" + WORD), 4)),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_common_spelling_is_found(spelling: str) -> None:
    text = b"[28/Nov/2026:10:00:00.123 +0000] - ERR - bind\n" + SPELLINGS[spelling] + b" \nend\n"
    assert len(forms_of(text)) == 1


def test_many_secrets_in_much_are_found_in_seconds() -> None:
    secrets = [
        Secret(name=str(at), kind=SecretKind.PASSWORD, value=b"Canary-%d-of-Kw7" % at)
        for at in range(200)
    ]
    line = b"[28/Nov/2026:10:00:00.123 +0000] conn=1 op=2 RESULT err=0 tag=97 nentries=0\n"
    data = line * 50_000 + b"Canary-77-of-Kw7".hex().encode()
    begun = time.process_time()
    assert [find.secret for find in finds_in({"log": data}, secrets)] == ["77"]
    assert time.process_time() - begun < 15


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
