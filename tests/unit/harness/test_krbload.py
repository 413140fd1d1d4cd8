"""Requests to a KDC, and how the load's output is read. Keys and folding are those of the RFCs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from pyasn1.codec.der import decoder, encoder

from dsharness.errors import WorkloadError
from dsharness.loads import LIVE, LOADS, Operations, Schedule
from dsharness.loads.load_driver import Worker
from dsharness.loads.own_load import CONNECT, REQUESTS_FILE
from dsharness.model import Workload
from dsharness.systems.system import Endpoint
from dsproducts.bind.dns_workloads import DnsperfWorkload
from dsproducts.bind.named import DnsEndpoint
from dsproducts.krb5.kdc import KdcEndpoint
from dsproducts.krb5.kerberos_request_bytes import (
    NONCE,
    as_request,
    encrypt,
    encrypted_timestamp,
    folded,
    key_of,
)
from dsproducts.krb5.krbload import MASK, request_lines
from dsproducts.krb5.krbload_workload import KrbloadWorkload

LOAD = LOADS["krbload"]
KDC = KdcEndpoint(port=8800)
NOW = datetime(2026, 11, 27, 21, 40, 12, 345, tzinfo=UTC)
RUN = Path(__file__).parents[2] / "golden" / "krbload" / "strangers.txt"
KEY = key_of("password", "ATHENA.MIT.EDUraeburn", 1)
OPEN = (
    "6a70306ea103020105a20302010aa4623060a00703050000000010a1123010a003020101a10930071b057573657237"
    "a2051b034c4142a3183016a003020102a10f300d1b066b72627467741b034c4142a511180f31393730303130313030"
    "303030305aa70602047ffffffea8053003020112"
)
PROOF = (
    "303fa003020112a23804361c5f860be497736e73c4eca09d41776e8d24c781450b77639bbbae887dda1abc40a35a5b"
    "8ea1e1830c73c3ac5aadf2133e29d911db96"
)


def workload(**changes: object) -> KrbloadWorkload:
    facts = {"id": "w", "title": "a load", "users": 5}
    return KrbloadWorkload.model_validate(facts | changes)


def lines(load: KrbloadWorkload, turn: int = 0) -> list[str]:
    return [*request_lines(load, KDC, turn, NOW)]


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("012345", 8, "be072631276b1955"),
        ("password", 7, "78a07b6caf85fa"),
        ("Rough Consensus, and Running Code", 8, "bb6ed30870b7f0e0"),
        ("kerberos", 16, "6b65726265726f737b9b5b2b93132b93"),
    ],
)
def test_bytes_are_folded_as_rfc_3961_shows(text: str, size: int, expected: str) -> None:
    assert folded(text.encode(), size).hex() == expected


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (1, "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161"),
        (1200, "55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a"),
    ],
)
def test_a_password_becomes_the_key_that_rfc_3962_shows(rounds: int, expected: str) -> None:
    assert key_of("password", "ATHENA.MIT.EDUraeburn", rounds).hex() == expected


def test_a_request_is_byte_for_byte_what_kdcs_have_answered() -> None:
    proof = encrypted_timestamp(
        KEY, NOW.replace(minute=0, second=0, microsecond=0), bytes(range(16))
    )
    assert proof.hex() == PROOF
    assert as_request("user7", "LAB", None).hex() == OPEN


@pytest.mark.parametrize("proof", [None, bytes.fromhex(PROOF), bytes(300)])
def test_a_request_is_strict_der(proof: bytes | None) -> None:
    request = as_request("guarded7", "LAB", proof)
    known: Any = decoder.decode(request)
    assert not known[1]
    assert encoder.encode(known[0]) == request
    assert request.count(NONCE) == 1


@given(st.binary(min_size=1, max_size=80))
def test_what_is_encrypted_can_be_read_again(plain: bytes) -> None:
    sealed = encrypt(KEY, 1, plain, bytes(range(16)))
    assert len(sealed) == 16 + len(plain) + 12
    secret = bytes.fromhex("0000000001aa")[1:]
    opener = Cipher(algorithms.AES256(KEY), modes.ECB()).encryptor()  # the key of this use
    first = opener.update(folded(secret, 16))
    assert unstolen(first + opener.update(first), sealed[:-12])[16:] == plain


def unstolen(key: bytes, sealed: bytes) -> bytes:
    """RFC 3962, 5, read from the end."""
    opener = Cipher(algorithms.AES256(key), modes.ECB()).decryptor()
    cut = len(sealed) % 16 or 16
    before, last_but_one, last = sealed[: -16 - cut], sealed[-16 - cut : -cut], sealed[-cut:]
    mixed = opener.update(last_but_one)
    whole = before + last + mixed[cut:] + last_but_one
    plain = b"".join(
        bytes(
            a ^ b
            for a, b in zip(
                opener.update(whole[at : at + 16]),
                whole[at - 16 : at] if at else bytes(16),
                strict=True,
            )
        )
        for at in range(0, len(whole), 16)
    )
    return plain[: len(sealed)]


def test_each_user_of_a_turn_asks_once_in_an_order_of_its_own() -> None:
    first, again, other = (lines(workload(users=50), turn) for turn in (0, 0, 1))
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)
    assert len({*first}) == 50
    assert all(line.startswith("ticket 0 - - 6a") and line.count(MASK) == 1 for line in first)


def test_a_proof_comes_at_once_or_when_the_kdc_has_asked_for_it() -> None:
    (at_once, *_), (asked, *_) = (lines(workload(proof=p)) for p in ("at-once", "when-asked"))
    assert at_once.split()[1:4] == ["0", "-", "-"]
    assert asked.split()[1:4] == ["25", "-", "-"]
    assert asked.split()[5:8] == ["0", "-", "-"]
    assert b"guarded".hex() in at_once
    assert len(asked.split()[4]) < len(asked.split()[8]) == len(at_once.split()[4])


def test_over_tcp_each_request_has_a_connection_of_its_own() -> None:
    (line, *_) = lines(workload(transport="tcp", proof="when-asked"))
    assert line.count(CONNECT) == 2
    assert line.startswith(f"ticket {CONNECT} 25 - - 6a")


def test_its_program_is_told_where_and_how_much() -> None:
    few = Operations(per_thread=3, limit_s=5)
    argv = LOAD.argv(workload(threads=8), KDC, "/load", few)
    assert argv[argv.index("krbload") :] == [
        "krbload", "udp://127.0.0.1:8800", f"/load/{REQUESTS_FILE}",
        "--connections", "8", "--limit", "11", "--operations", "24",
    ]  # fmt: skip
    rate = Schedule(per_second=50, seconds=2)
    argv = LOAD.argv(workload(transport="tcp"), KDC, "/load", rate)
    assert "tcp://127.0.0.1:8800" in argv
    assert argv[-4:] == ["--rate", "50", "--operations", "100"]
    worker = Worker(number=2, seconds=60, per_second=50)
    argv = LIVE["krbload"].live_argv(workload(), KDC, "/load", worker)
    assert argv[argv.index("--first") + 1] == "13"


def test_errors_are_counted_by_their_code_and_are_no_answers() -> None:
    report = LOAD.parse(RUN.read_text(encoding="utf-8"))
    assert report.errors == {"ticket: result 6 instead of 0": 111}
    assert report.total == report.latencies["ticket"].count == 889
    assert report.verified


DNS = DnsperfWorkload(id="d", title="queries")


@pytest.mark.parametrize(
    ("load", "server"), [(workload(), DnsEndpoint(port=53)), (DNS, KDC)], ids=["server", "load"]
)
def test_another_kind_of_server_or_load_is_refused(load: Workload, server: Endpoint) -> None:
    with pytest.raises(WorkloadError, match="asks a KDC for tickets"):
        LOAD.files(load, server, 0)


@pytest.mark.parametrize(("transport", "threads"), [("udp", 101), ("tcp", 41)])
def test_more_than_a_kdc_takes_at_once_is_refused(transport: str, threads: int) -> None:
    ((name, allowed),) = workload(transport=transport, threads=threads).contradictions()
    assert name == "threads"
    assert f"at most {threads - 1} over {transport}" in allowed
    assert not [*workload(transport=transport, threads=threads - 1).contradictions()]
