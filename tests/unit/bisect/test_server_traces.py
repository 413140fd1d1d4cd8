"""What two servers say is compared by kind: numbers, names and values differ each time."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.errors import InstanceError
from dsproducts.dirsrv.validation.server_traces import (
    MOST_KINDS,
    answers,
    files_in,
    messages,
    unindexed,
)
from dsvalidate.safe_gate import new_kinds, severe

ERRORS = """\
\t389-Directory/3.1.2 B2026.001
[23/Nov/2026:14:15:16.123456789 +0000] - INFO - main - 389-Directory/3.1.2 B2026.001 starting up
[23/Nov/2026:14:15:17.123456789 +0000] - INFO - do_bind - uid=a,dc=lab Old-a-Pa55word
[23/Nov/2026:14:15:18.123456789 +0000] - INFO - do_bind - uid=b,dc=lab Old-b-Pa55word
[23/Nov/2026:14:15:19.123456789 +0000] - ERR - attrcrypt - No key found for "AES" in backend a1
"""
ACCESS = """\
[23/Nov/2026:14:15:16.1 +0000] conn=1 op=0 BIND dn="uid=a" method=128 version=3
[23/Nov/2026:14:15:16.2 +0000] conn=1 op=0 RESULT err=0 tag=97 nentries=0 wtime=0.1 dn="uid=a"
[23/Nov/2026:14:15:16.3 +0000] conn=1 op=1 RESULT err=0 tag=101 nentries=9 etime=0.1 notes=U,P
[23/Nov/2026:14:15:16.4 +0000] conn=1 op=2 RESULT err=66 tag=107 nentries=0 etime=0.1
[23/Nov/2026:14:15:16.4 +0000] conn=1 op=3 UNBIND
"""


def test_messages_are_counted_by_what_they_say() -> None:
    found = messages(ERRORS)
    assert list(found.values()) == [1, 1, 2, 1]
    assert [kind for kind in found if severe(kind)] == [
        "ERR: attrcrypt - No key found for … in backend …"
    ]
    assert "Pa55word" not in str(found)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_make_no_other_kind(one: int, other: int) -> None:
    line = "[a] - WARN - plugin - entry {0} of cn=x{0} (took {0} ms) is late\n"
    assert len(messages(line.format(one) + line.format(other))) == 1


def test_a_flood_of_kinds_is_bounded_and_counted() -> None:
    words = [f"[a] - INFO - f - {'x' * (each % 60)} {'y' * (each // 60)}\n" for each in range(900)]
    found = messages("".join(words))
    assert len(found) <= MOST_KINDS + 1
    assert sum(found.values()) == len(words)


@pytest.mark.parametrize(
    "word", ["x" * 10**6, ")" * 10**6, "'" * (10**6 + 1), "(" * 10**6, "a=" * 10**5]
)
def test_a_word_of_any_length_is_read_in_a_moment(word: str) -> None:
    began = time.process_time()
    assert len(messages(f"[a] - ERR - plugin - {word} is late\n")) == 1
    assert time.process_time() - began < 2


def test_answers_of_a_hostile_server_are_counted_and_bounded() -> None:
    line = "[x] conn=1 op=0 RESULT err={0} tag={1} notes={0}\n"
    assert answers(line.format("9" * 5000, "9" * 5000)) == {}
    found = answers("".join(line.format(each, 97) for each in range(900)))
    assert len(found) <= MOST_KINDS + 1
    assert sum(found.values()) == 900


def test_a_file_that_claims_to_be_larger_than_any_is_not_read() -> None:
    stream = io.BytesIO(b"900000000000 1 900000000000\na")
    with pytest.raises(InstanceError, match="900000000000 bytes"):
        list(files_in(stream))


def test_answers_are_counted_by_operation_code_and_notes() -> None:
    found = answers(ACCESS)
    assert found == {"bind err=0": 1, "search err=0 notes=U,P": 1, "delete err=66": 1}
    assert [kind for kind in found if unindexed(kind)] == ["search err=0 notes=U,P"]
    assert new_kinds(found, {"bind err=0": 9}) == ("delete err=66", "search err=0 notes=U,P")
