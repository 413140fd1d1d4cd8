"""Text that somebody else wrote: it says what it says, and steers nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.errors import BuildError
from dsharness.plain_text import plain, plain_bytes


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("pw.c:1: error: no\tway\n", "pw.c:1: error: no\tway\n"),
        ("\x1b[01;31merror:\x1b[0m no", "error: no"),
        ("\x1b]0;a title\x07error", "error"),
        ("\x1b]52;c;Y2xpcA==\x1b\\error", "error"),
        ("\x9b31merror", "error"),
        ("a\rb\x07\x08", "a\\x0db\\x07\\x08"),
        ("a\r\nb", "a\nb"),
        ("abc\N{RIGHT-TO-LEFT OVERRIDE}cba", "abc\\u202ecba"),
        ("half a \udc80 letter", "half a \\udc80 letter"),
        ("ümläut ✓", "ümläut ✓"),
    ],
)
def test_a_line_is_only_text(said: str, shown: str) -> None:
    assert plain(said) == shown


@given(st.text())
def test_nothing_that_steers_is_left(said: str) -> None:
    left = [each for each in plain(said) if unicodedata.category(each) in {"Cc", "Cs"}]
    assert set(left) <= {"\n", "\t"}
    assert plain(plain(said)) == plain(said)


@given(st.binary())
def test_a_log_holds_no_escape(said: bytes) -> None:
    assert not set(plain_bytes(said)) & {0x1B, 0x07, 0x08, 0x7F}


def test_an_error_says_no_more_than_text() -> None:
    error = BuildError("unbuildable: \x1b[2Jgone", hint="\x1b[8mhidden")
    assert "\x1b" not in f"{error}{error!r}"
    assert len(str(BuildError("x" * 10**6))) < 10**4
