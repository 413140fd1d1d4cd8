"""Queries as the lab's own load sends them, and how what comes of them is read."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.errors import WorkloadError
from dsharness.loads import LIVE, LOADS, Operations, Schedule
from dsharness.loads.load_driver import Worker
from dsharness.loads.own_load import REQUESTS_FILE
from dsharness.model import Workload
from dsharness.systems.system import Endpoint
from dsproducts.bind.dns_workloads import DnsloadWorkload
from dsproducts.bind.dnsload import query, request_lines
from dsproducts.bind.named import DnsEndpoint
from dsproducts.krb5.kdc import KdcEndpoint
from dsproducts.krb5.krbload_workload import KrbloadWorkload

LOAD = LOADS["dnsload"]
NAMED = DnsEndpoint(port=5300)
RUN = Path(__file__).parents[2] / "golden" / "dnsload" / "unknown-names.txt"  # of BIND 9.18.49
LABELS = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=63)


def workload(**changes: object) -> DnsloadWorkload:
    return DnsloadWorkload.model_validate({"id": "w", "title": "a load", "names": 5} | changes)


def test_a_query_is_byte_for_byte_what_named_has_answered() -> None:
    assert query("n7.lab.").hex() == "0000000000010000000000000" + "26e37036c61620000010001"


def read(message: bytes) -> tuple[bytes, list[str], bytes]:
    """The header, the labels of the only question, and what follows them."""
    at, labels = 12, list[str]()
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode())
        at += 1 + message[at]
    return message[:12], labels, message[at + 1 :]


@given(st.lists(LABELS, min_size=1, max_size=3), st.booleans())
def test_a_name_can_be_read_again_from_its_query(labels: list[str], ends: bool) -> None:
    header, found, kind = read(query(".".join(labels) + "." * ends))
    assert found == labels
    assert header == bytes.fromhex("0000 0000 0001 0000 0000 0000"), "no recursion is asked for"
    assert kind == bytes.fromhex("0001 0001")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a..lab.", "has not 1 to 63 bytes"),
        ("", "has not 1 to 63 bytes"),
        ("a" * 64, "has not 1 to 63 bytes"),
        (".".join(["a" * 63] * 4), "more than 255 bytes"),
    ],
)
def test_what_no_query_can_hold_is_refused(name: str, why: str) -> None:
    with pytest.raises(WorkloadError, match=why):
        query(name)


def test_each_name_of_a_turn_is_asked_for_once_in_an_order_of_its_own() -> None:
    load = workload(names=50)
    first, again, other = ([*request_lines(load, NAMED, turn)] for turn in (0, 0, 1))
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)
    assert {*first} == {f"query 0 1 - {query(f'n{n}.lab.').hex()}" for n in range(50)}


def test_its_program_is_told_where_and_how_much() -> None:
    few = Operations(per_thread=3, limit_s=5)
    argv = LOAD.argv(workload(threads=8), NAMED, "/load", few)
    assert argv[argv.index("dnsload") :] == [
        "dnsload", "udp://127.0.0.1:5300", f"/load/{REQUESTS_FILE}",
        "--connections", "8", "--limit", "11", "--operations", "24",
    ]  # fmt: skip
    rate = Schedule(per_second=50, seconds=2)
    argv = LOAD.argv(workload(transport="tcp"), NAMED, "/load", rate)
    assert "tcp://127.0.0.1:5300" in argv
    assert argv[-4:] == ["--rate", "50", "--operations", "100"]
    worker = Worker(number=2, seconds=60, per_second=50)
    argv = LIVE["dnsload"].live_argv(workload(), NAMED, "/load", worker)
    assert argv[argv.index("--tells") + 1] == "1"


def test_errors_are_counted_by_their_code_and_are_no_answers() -> None:
    report = LOAD.parse(RUN.read_text(encoding="utf-8"))
    assert report.errors == {"query: result 3 instead of 0": 504}
    assert report.total == report.latencies["query"].count == 496
    assert report.verified


TICKETS = KrbloadWorkload(id="k", title="tickets")


@pytest.mark.parametrize(
    ("load", "server"),
    [(workload(), KdcEndpoint(port=88)), (TICKETS, NAMED)],
    ids=["server", "load"],
)
def test_another_kind_of_server_or_load_is_refused(load: Workload, server: Endpoint) -> None:
    with pytest.raises(WorkloadError, match="asks for names of a zone"):
        LOAD.files(load, server, 0)


def test_more_than_a_server_takes_at_once_is_refused() -> None:
    ((name, allowed),) = workload(threads=101).contradictions()
    assert name == "threads"
    assert "at most 100" in allowed
    assert not [*workload(threads=100).contradictions()]
