"""The load of KDCs against one that answers as a test wants, in one container without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX

from dsbuilds.built_row import load_image
from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.loads import LOADS, LoadReport
from dsharness.loads.kerberos_request_bytes import NONCE, as_request
from dsharness.loads.krbload import CONNECT, MASK

REQUEST = as_request("user0", "LAB", None).hex().replace(NONCE.hex(), MASK)
FILES = {"udp": f"ticket 0 - - {REQUEST}\n", "tcp": f"ticket {CONNECT} 0 - - {REQUEST}\n"}

KDC = """\
import socket, sys

OVER, HOW = sys.argv[1:]

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

kind = socket.SOCK_DGRAM if OVER == "udp" else socket.SOCK_STREAM
at = socket.socket(socket.AF_INET, kind)
at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last test's connections wait
at.bind(("127.0.0.1", 8801))
if OVER == "tcp":
    at.listen(64)
print("ready", flush=True)
(serve_udp if OVER == "udp" else serve_tcp)(at)
"""

RUN = """\
rm -f /tmp/said
python3 /load/kdc.py "$1" "$2" >/tmp/said & server=$!
until [ -s /tmp/said ]; do kill -0 $server || exit 1; sleep 0.05; done
ldapload "kerberos-$1://127.0.0.1:8801" "/load/$1.txt" --connections 4 --operations 200 --limit 2
status=$?
kill $server
wait $server
echo "load ended with status $status"
"""


@pytest.fixture(scope="module")
def box(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    folder = tmp_path_factory.mktemp("load")
    (folder / "kdc.py").write_text(KDC)
    for name, text in FILES.items():
        (folder / f"{name}.txt").write_text(text)
    image = load_image(engine, MATRIX, "krbload", progress=print)
    with running(
        engine, image.reference, "sleep", "infinity", purpose="krbload",
        options=Options(volumes=((folder, "/load", "ro"),)), log=Path(folder / "log"),
    ) as made:  # fmt: skip
        yield made


def report(box: Container, over: str, how: str) -> LoadReport:
    return LOADS["krbload"].parse(box.execute("sh", "-c", RUN, "sh", over, how).stdout)


@pytest.mark.parametrize("over", FILES)
def test_each_request_is_another_one_and_each_answer_is_read(box: Container, over: str) -> None:
    """This KDC refuses bytes that it has seen, and sends over TCP byte by byte."""
    found = report(box, over, "well")
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
    box: Container, over: str, how: str, error: str, times: int
) -> None:
    """An answer that cannot be right ends its connection; a refusal does not."""
    found = report(box, over, how)
    assert (found.total, found.errors) == (0, {error: times})


def test_a_packet_that_is_lost_is_told(box: Container) -> None:
    found = report(box, "udp", "silent")
    assert found.total == 0
    assert found.errors == {"the time was over before its operations were": 1}
