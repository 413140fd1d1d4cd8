"""What krbload asks for, and what a KDC is filled with before."""

# Every value is frozen, which pyright does not read off the model's configuration.
# pyright: reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from dsharness.model import Content, Transport
from dsharness.model.workload import Connections, ScheduledWorkload

SHORT_TICKETS = "tickets that fit into a datagram"  # those of a domain tell of groups, too


class RealmContent(Content):
    """Users of a realm, and as many who must prove themselves first."""

    kind: Literal["realm"] = "realm"


# Of more than 45 connections a KDC drops the oldest; the kernel kept 125 requests for it, not 150.
KDC_ROOM = {Transport.UDP: 100, Transport.TCP: 40}


class Proof(StrEnum):
    """When a user proves to a KDC that it knows its password, by an encrypted timestamp."""

    NONE = "none"  # never: such users get a ticket for their name
    AT_ONCE = "at-once"  # with the first request
    WHEN_ASKED = "when-asked"  # with a second one, as clients do that know nothing of the user


class KrbloadWorkload(ScheduledWorkload):
    """Tickets of a Kerberos realm's users, by the lab's own load."""

    protocol: ClassVar[str] = "kerberos"
    tool: Literal["krbload"] = "krbload"
    operation: Literal["ticket"] = "ticket"
    threads: Connections = Field(default=4, description="users that wait for an answer")
    transport: Transport = Transport.UDP
    proof: Proof = Proof.NONE
    users: PositiveInt = Field(
        default=1000, le=20_000, description="users of the realm, all in turn"
    )

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({SHORT_TICKETS} if self.transport is Transport.UDP else ())

    @property
    def content(self) -> RealmContent:
        return RealmContent(number=self.users)

    @property
    def distinct_entries(self) -> int:
        return self.users

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse more users at once than a KDC has connections, or its socket has room for."""
        most = KDC_ROOM[self.transport]
        if self.threads > most:
            yield "threads", f"at most {most} over {self.transport}, or the KDC drops some"
