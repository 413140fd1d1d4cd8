"""The load of DNS against a server that answers as a test wants, in a box without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX

from dsbuilds.built_row import load_image
from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.loads import LOADS, LoadReport
from dsharness.loads.dnsload import query

NAMES = 3
REQUESTS = "".join(f"query 0 1 - {query(f'n{n}.lab.').hex()}\n" for n in range(NAMES))

SERVER = """\
import socket, sys, threading

threading.excepthook = lambda told: None  # the load knew enough, and has closed it

OVER, HOW = sys.argv[1:]
CODES = {"unknown": 3, "refused": 5, "unread": 1}

def answer(query):
    if HOW == "garbage":
        return b"HTTP/1.1 400 Bad Request"
    if HOW == "echo":
        return query
    if HOW == "short":
        return query[:7]
    code, question = CODES.get(HOW, 0), query[12:]
    if HOW == "other":
        question = question.replace(b"lab", b"bal")
    records = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\1\\0\\4\\x0a\\0\\0\\1"
    if HOW == "empty" or code:
        records = b""
    ident = bytes([query[0] ^ 1, query[1]]) if HOW == "stranger" else query[:2]
    asked = b"" if HOW == "unread" else question
    counts = bytes([0, bool(asked), 0, bool(records), 0, 0, 0, 0])
    return ident + bytes([0x84, code]) + counts + asked + records

def held(queries):
    # Those that wait together must differ.
    ids = [query[:2] for query in queries]
    return len(set(ids)) == len(ids)

def serve_udp(at):
    while True:
        waiting = [at.recvfrom(65536) for _ in range(4 if HOW == "together" else 1)]
        if HOW == "silent":
            continue
        if not held([query for query, _ in waiting]):
            sys.exit("the same id twice")
        for query, client in reversed(waiting):
            at.sendto(answer(query), client)

def serve_one(client):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while size := int.from_bytes(client.recv(2, socket.MSG_WAITALL), "big"):
        said = answer(client.recv(size, socket.MSG_WAITALL))
        said = len(said).to_bytes(2, "big") + said
        for piece in range(len(said)):
            client.sendall(said[piece:piece + 1])

def serve_tcp(at):
    while True:
        client, _ = at.accept()
        threading.Thread(target=serve_one, args=(client,), daemon=True).start()

kind = socket.SOCK_DGRAM if OVER == "udp" else socket.SOCK_STREAM
at = socket.socket(socket.AF_INET, kind)
at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last test's connections wait
at.bind(("127.0.0.1", 8802))
if OVER == "tcp":
    at.listen(64)
print("ready", flush=True)
(serve_udp if OVER == "udp" else serve_tcp)(at)
"""

RUN = """\
rm -f /tmp/said
python3 /load/server.py "$1" "$2" >/tmp/said & server=$!
until [ -s /tmp/said ]; do kill -0 $server || exit 1; sleep 0.05; done
ldapload "dns-$1://127.0.0.1:8802" /load/requests.txt --connections 4 --operations 200 --limit 2
status=$?
kill $server
wait $server
echo "load ended with status $status"
"""


@pytest.fixture(scope="module")
def box(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    folder = tmp_path_factory.mktemp("load")
    (folder / "server.py").write_text(SERVER)
    (folder / "requests.txt").write_text(REQUESTS)
    image = load_image(engine, MATRIX, "dnsload", progress=print)
    with running(
        engine, image.reference, "sleep", "infinity", purpose="dnsload",
        options=Options(volumes=((folder, "/load", "ro"),)), log=Path(folder / "log"),
    ) as made:  # fmt: skip
        yield made


def report(box: Container, over: str, how: str) -> LoadReport:
    return LOADS["dnsload"].parse(box.execute("sh", "-c", RUN, "sh", over, how).stdout)


@pytest.mark.parametrize(("over", "how"), [("udp", "well"), ("tcp", "well"), ("udp", "together")])
def test_each_answer_is_read(box: Container, over: str, how: str) -> None:
    """Over TCP it comes byte by byte; one server waits for four queries, whose ids must differ."""
    found = report(box, over, how)
    assert (found.total, found.errors, found.exit_status) == (200, {}, 0)
    assert found.verified
    assert found.latencies["query"].count == 200


@pytest.mark.parametrize("over", ["udp", "tcp"])
@pytest.mark.parametrize(
    ("how", "error", "times"),
    [
        ("unknown", "query: result 3 instead of 0", 200),
        ("refused", "query: result 5 instead of 0", 200),
        ("unread", "query: result 1 instead of 0", 200),  # which does not repeat the question
        ("empty", "query: 0 entries instead of 1", 200),
        ("other", "an answer to another question", 4),
        ("stranger", "an answer that was not asked for", 4),
        ("echo", "an answer that is not DNS", 4),
        ("short", "an answer that is not DNS", 4),
    ],
)
def test_what_is_no_address_is_an_error(
    box: Container, over: str, how: str, error: str, times: int
) -> None:
    """An answer that cannot be right ends its socket; a refusal does not."""
    found = report(box, over, how)
    assert (found.total, found.errors) == (0, {error: times})


def test_words_are_no_answer(box: Container) -> None:
    found = report(box, "udp", "garbage")
    assert (found.total, len(found.errors), sum(found.errors.values())) == (0, 1, 4)


def test_a_query_that_is_lost_is_told(box: Container) -> None:
    found = report(box, "udp", "silent")
    assert found.total == 0
    assert found.errors == {"the time was over before its operations were": 1}
