"""dnsload: queries for the names of a zone, sent and checked by a program of the lab.

dnsperf stays what verdicts are made with: this one tells each second what came of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from dsharness.errors import WorkloadError
from dsharness.loads.load_driver import unfit
from dsharness.loads.own_load import OwnLoad
from dsharness.model import Workload
from dsharness.systems.system import Endpoint
from dsproducts.bind.dns_workloads import DnsloadWorkload
from dsproducts.bind.named import DnsEndpoint

ID = bytes(2)  # the program puts another in its place each time
# Of an authority: nobody else is to be asked.
ONE_QUESTION = bytes.fromhex("0000 0001 0000 0000 0000")
ADDRESS, INTERNET = 1, 1
LABEL_BYTES, NAME_BYTES = 63, 255


class Dnsload(OwnLoad):
    """The driver of the lab's own load for servers of a zone."""

    name: ClassVar[str] = "dnsload"
    usual: ClassVar[str] = "dns-live"
    speech: ClassVar[Path | None] = Path(__file__).with_name("dns_speech.rs")

    def lines(self, workload: Workload, endpoint: Endpoint, turn: int) -> Iterator[str]:
        load, server = _dns(workload, endpoint)
        return request_lines(load, server, turn)

    def server(self, workload: Workload, endpoint: Endpoint) -> tuple[str, list[str]]:
        load, server = _dns(workload, endpoint)
        return f"{load.transport}://{server.host}:{server.port_of(load.protocol)}", []


def _dns(workload: Workload, endpoint: Endpoint) -> tuple[DnsloadWorkload, DnsEndpoint]:
    if isinstance(workload, DnsloadWorkload) and isinstance(endpoint, DnsEndpoint):
        return workload, endpoint
    raise unfit(workload, "asks for names of a zone, which this server does not serve")


def request_lines(load: DnsloadWorkload, server: DnsEndpoint, turn: int) -> Iterator[str]:
    """Ask for each name, in an order of the turn: each has one address."""
    numbers = list(range(load.names))
    random.Random(f"{load.id}/{turn}").shuffle(numbers)  # noqa: S311 - fairness, not secrecy
    for number in numbers:
        yield f"{load.operation} 0 1 - {query(server.name(number)).hex()}"


def query(name: str) -> bytes:
    """A query for the address of a name, as RFC 1035 has it."""
    labels = [label.encode("ascii") for label in name.removesuffix(".").split(".")]
    if not all(1 <= len(label) <= LABEL_BYTES for label in labels):
        raise WorkloadError(
            f"{name!r} is no name: a part of it has not 1 to {LABEL_BYTES} bytes",
            hint="choose a zone whose names are shorter",
        )
    encoded = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    if len(encoded) > NAME_BYTES:
        raise WorkloadError(
            f"{name!r} is no name: it has more than {NAME_BYTES} bytes",
            hint="choose a zone whose names are shorter",
        )
    kind = ADDRESS.to_bytes(2, "big") + INTERNET.to_bytes(2, "big")
    return ID + ONE_QUESTION + encoded + kind
