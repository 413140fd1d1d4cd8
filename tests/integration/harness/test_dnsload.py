"""The load of DNS against a server that answers as a test wants, in a box without a network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from answering_box import AnsweringBox, answering_box

from dsharness.containers.engine import Engine
from dsproducts.bind.dnsload import query

NAMES = 3
REQUESTS = "".join(f"query 0 1 - {query(f'n{n}.lab.').hex()}\n" for n in range(NAMES))

SERVER = """\
import threading

threading.excepthook = lambda told: None  # the load knew enough, and has closed it
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
"""


@pytest.fixture(scope="module")
def box(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnsweringBox]:
    requests = dict.fromkeys(("udp", "tcp"), REQUESTS)
    folder = tmp_path_factory.mktemp("load")
    with answering_box(engine, folder, "dnsload", SERVER, requests) as made:
        yield made


@pytest.mark.parametrize(("over", "how"), [("udp", "well"), ("tcp", "well"), ("udp", "together")])
def test_each_answer_is_read(box: AnsweringBox, over: str, how: str) -> None:
    """Over TCP it comes byte by byte; one server waits for four queries, whose ids must differ."""
    found = box.report(over, how)
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
    box: AnsweringBox, over: str, how: str, error: str, times: int
) -> None:
    """An answer that cannot be right ends its socket; a refusal does not."""
    found = box.report(over, how)
    assert (found.total, found.errors) == (0, {error: times})


def test_words_are_no_answer(box: AnsweringBox) -> None:
    found = box.report("udp", "garbage")
    assert (found.total, len(found.errors), sum(found.errors.values())) == (0, 1, 4)


def test_a_query_that_is_lost_is_told(box: AnsweringBox) -> None:
    found = box.report("udp", "silent")
    assert found.total == 0
    assert found.errors == {"the time was over before its operations were": 1}
