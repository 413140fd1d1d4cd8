"""What dnsperf and dnsload ask for, and what a name server is filled with before."""

# Every value is frozen, which pyright does not read off the model's configuration.
# pyright: reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from dsharness.model import Content, Transport
from dsharness.model.workload import Connections, Number, ScheduledWorkload

COUNT = "a count of queries"  # of the server's own: dnsperf compares no answer


class ZoneContent(Content):
    """Names of a zone, each with an address of its own."""

    kind: Literal["names"] = "names"


class DnsperfWorkload(ScheduledWorkload):
    """Queries for the addresses of a zone's names, by dnsperf."""

    protocol: ClassVar[str] = "dns"
    tool: Literal["dnsperf"] = "dnsperf"
    operation: Literal["query"] = "query"
    threads: Connections = 1
    transport: Transport = Transport.UDP
    names: PositiveInt = Field(
        default=1000, le=1 << 24, description="names of the zone, all asked for in turn"
    )
    clients: Connections = Field(default=20, description="sockets that queries are sent from")
    outstanding: Number = Field(default=100, description="queries that wait for an answer")
    timeout_s: PositiveInt = Field(default=5, le=3600, description="a query is lost after so long")
    buffer_kb: Number = Field(default=200, description="of each socket, in either direction")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({COUNT})

    @property
    def at_once(self) -> int:
        return self.outstanding

    @property
    def content(self) -> ZoneContent:
        return ZoneContent(number=self.names)

    @property
    def distinct_entries(self) -> int:
        return self.names

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse sockets without a query: dnsperf shares those that wait out among them."""
        if self.outstanding < self.clients:
            least = f"at least the {self.clients} sockets that queries are sent from (`clients`)"
            yield "outstanding", least


DNS_ROOM = 100  # the kernel kept 150 queries for one socket of named's, not 200


class DnsloadWorkload(ScheduledWorkload):
    """Queries for the addresses of a zone's names, by the lab's own load."""

    protocol: ClassVar[str] = "dns"
    tool: Literal["dnsload"] = "dnsload"
    operation: Literal["query"] = "query"
    threads: Connections = Field(default=20, description="sockets, each with one query")
    transport: Transport = Transport.UDP
    names: PositiveInt = Field(
        default=1000, le=20_000, description="names of the zone, all asked for in turn"
    )

    @property
    def content(self) -> ZoneContent:
        return ZoneContent(number=self.names)

    @property
    def distinct_entries(self) -> int:
        return self.names

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse more queries at once than a server's socket has room for."""
        if self.threads > DNS_ROOM:
            yield "threads", f"at most {DNS_ROOM}, or the kernel drops some"
