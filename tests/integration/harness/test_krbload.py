"""The load of KDCs against one that answers as a test wants, in one container without a network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from answering_box import AnsweringBox, answering_box

from dsharness.containers.engine import Engine
from dsharness.loads.own_load import CONNECT
from dsproducts.krb5.kerberos_request_bytes import NONCE, as_request
from dsproducts.krb5.krbload import MASK

REQUEST = as_request("user0", "LAB", None).hex().replace(NONCE.hex(), MASK)
FILES = {"udp": f"ticket 0 - - {REQUEST}\n", "tcp": f"ticket {CONNECT} 0 - - {REQUEST}\n"}

KDC = """\
def tlv(tag, content):
    return bytes([tag, len(content)]) + content

def name(user):
    return bytes.fromhex("3010a003020101a10930071b05") + user

seen = set()

def answer(request):
    repeated = request in seen
    seen.add(request)
    if HOW == "garbage":
        return b"HTTP/1.1 400 Bad Request"
    if HOW == "error" or repeated or name(b"user0") not in request:
        return tlv(0x7E, tlv(0x30, tlv(0xA5, b"\\x02\\x01\\x00") + tlv(0xA6, b"\\x02\\x01\\x3c")))
    whose = b"user1" if HOW == "other" else b"user0"
    return tlv(0x6B, tlv(0x30, tlv(0xA0, b"\\x02\\x01\\x05") + tlv(0xA4, name(whose))))

def serve_udp(at):
    while True:
        request, client = at.recvfrom(65536)
        if HOW != "silent":
            at.sendto(answer(request), client)

def serve_tcp(at):
    while True:
        client, _ = at.accept()
        size = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
        said = answer(client.recv(size, socket.MSG_WAITALL))
        said = said if HOW == "garbage" else len(said).to_bytes(4, "big") + said
        try:
            for piece in range(len(said)):
                client.sendall(said[piece:piece + 1])
        except OSError:
            pass  # the load knew enough
        client.close()
"""


@pytest.fixture(scope="module")
def box(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnsweringBox]:
    folder = tmp_path_factory.mktemp("load")
    with answering_box(engine, folder, "krbload", KDC, FILES) as made:
        yield made


@pytest.mark.parametrize("over", FILES)
def test_each_request_is_another_one_and_each_answer_is_read(box: AnsweringBox, over: str) -> None:
    """This KDC refuses bytes that it has seen, and sends over TCP byte by byte."""
    found = box.report(over, "well")
    assert (found.total, found.errors, found.exit_status) == (200, {}, 0)
    assert found.verified
    assert found.latencies["ticket"].count == 200


@pytest.mark.parametrize(
    ("over", "how", "error", "times"),
    [
        ("udp", "error", "ticket: result 60 instead of 0", 200),
        ("tcp", "error", "ticket, step 2: result 60 instead of 0", 200),  # after connecting
        ("udp", "other", "a ticket of somebody else", 4),
        ("tcp", "other", "a ticket of somebody else", 4),
        ("udp", "garbage", "an answer that is not Kerberos", 4),
        ("tcp", "garbage", "an answer that is not Kerberos", 4),
    ],
)
def test_what_is_no_ticket_is_an_error(
    box: AnsweringBox, over: str, how: str, error: str, times: int
) -> None:
    """An answer that cannot be right ends its connection; a refusal does not."""
    found = box.report(over, how)
    assert (found.total, found.errors) == (0, {error: times})


def test_a_packet_that_is_lost_is_told(box: AnsweringBox) -> None:
    found = box.report("udp", "silent")
    assert found.total == 0
    assert found.errors == {"the time was over before its operations were": 1}
