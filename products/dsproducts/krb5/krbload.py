"""krbload: first requests to a KDC, sent and checked by a program of the lab.

What is encoded here differs by the user; the program makes each request another one by its nonce,
or the KDC would take it for one that was sent again, and would send its first answer again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from dsharness.errors import WorkloadError
from dsharness.loads.load_driver import unfit
from dsharness.loads.own_load import CONNECT, MOST_REQUESTS, OwnLoad
from dsharness.model import Transport, Workload
from dsharness.systems.system import Endpoint
from dsproducts.krb5.kdc import KdcEndpoint, user
from dsproducts.krb5.kerberos_request_bytes import NONCE, as_request, encrypted_timestamp, key_of
from dsproducts.krb5.krbload_workload import KrbloadWorkload, Proof

MASK = "." * 8  # in place of a nonce
PROOF_WANTED = 25  # the error by which a KDC asks for it


class Krbload(OwnLoad):
    """The driver of the lab's own load for KDCs."""

    name: ClassVar[str] = "krbload"
    usual: ClassVar[str] = "kerberos-preauth"
    speech: ClassVar[Path | None] = Path(__file__).with_name("kerberos_speech.rs")

    def lines(self, workload: Workload, endpoint: Endpoint, turn: int) -> Iterator[str]:
        load, server = _kerberos(workload, endpoint)
        return request_lines(load, server, turn, datetime.now(UTC))

    def server(self, workload: Workload, endpoint: Endpoint) -> tuple[str, list[str]]:
        load, server = _kerberos(workload, endpoint)
        return f"{load.transport}://{server.host}:{server.port_of(load.protocol)}", []


def _kerberos(workload: Workload, endpoint: Endpoint) -> tuple[KrbloadWorkload, KdcEndpoint]:
    if isinstance(workload, KrbloadWorkload) and isinstance(endpoint, KdcEndpoint):
        return workload, endpoint
    raise unfit(workload, "asks a KDC for tickets, which this server does not give")


def request_lines(
    load: KrbloadWorkload, server: KdcEndpoint, turn: int, now: datetime
) -> Iterator[str]:
    """Ask for each user's ticket; a proof is of the full hour, which the KDC takes all day."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    chance = random.Random(f"{load.id}/{turn}")  # noqa: S311 - fairness, not secrecy
    users = list(range(load.users))
    chance.shuffle(users)
    for number in users[:MOST_REQUESTS]:
        name = user(number, guarded=load.proof is not Proof.NONE)
        steps = list[str]()
        if load.proof is not Proof.AT_ONCE:
            result = 0 if load.proof is Proof.NONE else PROOF_WANTED
            steps += _step(load, result, as_request(name, server.realm, None))
        if load.proof is not Proof.NONE:
            key = key_of(server.password, f"{server.realm}{name}")
            proof = encrypted_timestamp(key, hour, chance.randbytes(16))
            steps += _step(load, 0, as_request(name, server.realm, proof))
        yield " ".join([load.operation, *steps])


def _step(load: KrbloadWorkload, result: int, request: bytes) -> list[str]:
    if request.count(NONCE) != 1:  # by chance, of an encrypted timestamp
        raise WorkloadError("a request has its nonce's mask twice", hint="ask again")
    # A KDC ends each connection with its answer.
    connects = [CONNECT] if load.transport is Transport.TCP else []
    return [*connects, f"{result} - - {request.hex().replace(NONCE.hex(), MASK)}"]
