"""A client of a few kinds of requests: they are encoded as ldap3 encodes them, and answers read."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldap3.protocol.rfc4511 import LDAPMessage
from pyasn1.codec.ber import decoder

from dsharness.errors import InstanceError
from dsproducts.dirsrv.validation import single_client as client

LONG = "x" * 300


@given(st.text(max_size=400), st.text(max_size=400))
def test_a_bind_is_whole_ber_and_has_both_words(dn: str, password: str) -> None:
    bind = _message(client.bind(dn, password))["protocolOp"].getComponent()
    assert (int(bind["version"]), bytes(bind["name"]).decode()) == (3, dn)
    assert bytes(bind["authentication"]["simple"]).decode() == password


def _message(request: bytes) -> Any:
    message, rest = decoder.decode(request, asn1Spec=LDAPMessage())
    assert rest == b""
    return message


def test_search_and_change_are_what_they_say() -> None:
    search = _message(client.search("dc=lab", "uid", LONG))["protocolOp"].getComponent()
    assert (str(search["baseObject"]), int(search["scope"])) == ("dc=lab", 2)
    matched = search["filter"]["equalityMatch"]
    assert (str(matched["attributeDesc"]), str(matched["assertionValue"])) == ("uid", LONG)
    change = _message(client.replace("uid=a", "cn", LONG))["protocolOp"].getComponent()
    [each] = change["changes"]
    assert (str(change["object"]), int(each["operation"])) == ("uid=a", 2)
    assert [str(value) for value in each["modification"]["vals"]] == [LONG]


def answer(tag: int, code: int, words: bytes = b"") -> bytes:
    body = bytes([0x0A, 1, code]) + b"\x04\x00" + bytes([4, len(words)]) + words
    operation = bytes([tag, len(body)]) + body
    return bytes([0x30, 3 + len(operation), 2, 1, 1]) + operation


ENTRY = bytes([0x30, 11, 2, 1, 1, 0x64, 6, 4, 2, 97, 61, 0x30, 0])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, list[bytes]]]:
    """Answers each request with the next of its parts, a byte at a time."""
    path, parts = tmp_path / "ldapi", list[bytes]()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            stream, _ = listening.accept()
            with stream:
                while parts and stream.recv(65536):
                    for byte in parts.pop(0):
                        stream.sendall(bytes([byte]))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path, parts
        thread.join(timeout=5)


def test_each_request_is_timed_and_entries_before_the_end_are_passed(server) -> None:
    path, parts = server
    parts += [answer(0x61, 0), ENTRY + ENTRY + answer(0x65, 0), answer(0x67, 0)]
    with client.single_client(path) as one:
        took = one.timed([client.bind("a", "b"), client.search("", "a", "b"), b"c"])
    assert len(took) == 3
    assert all(each > 0 for each in took)


@pytest.mark.parametrize(
    ("part", "why"), [(answer(0x61, 49, b"no"), "result 49"), (b"\x30", "closed a connection")]
)
def test_a_refusal_and_an_end_are_errors(server, part: bytes, why: str) -> None:
    path, parts = server
    parts.append(part)
    with client.single_client(path) as one, pytest.raises(InstanceError, match=why):
        one.timed([client.bind("a", "b")])


def test_a_server_that_is_gone_is_an_error(tmp_path: Path) -> None:
    gone = client.single_client(tmp_path / "none")
    with pytest.raises(InstanceError, match="stopped answering"), gone:
        pass


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_a_message_is_taken_whole_or_not_at_all(content: bytes, after: bytes) -> None:
    whole = client._value(0x30, content)
    assert client.first_message(whole + after) == (content, after)
    for end in range(len(whole)):
        assert client.first_message(whole[:end]) == (None, whole[:end])
