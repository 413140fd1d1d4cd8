"""What loads of a mesh do: bytes from a peer to another, echoes, and restarts of each peer."""

# Every value is frozen, which pyright does not read off the model's configuration.
# pyright: reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt

from dsharness.model import Content
from dsharness.model.workload import Connections, Number, ScheduledWorkload, WorkloadBase

MOST_PEERS = 100  # each has an address of its own in one network
BLOCK_BYTES = 128 << 10  # an operation of iperf3's, which writes and reads so much at a time
Peers = Annotated[PositiveInt, Field(ge=2, le=MOST_PEERS, description="of the mesh")]


class PeersContent(Content):
    """Peers of one network, each connected with all others."""

    kind: Literal["peers"] = "peers"
    number: Peers = 3


class ThroughputWorkload(ScheduledWorkload):
    """Blocks of 128 KiB over TCP from the last peer to the first, by iperf3."""

    protocol: ClassVar[str] = "mesh"
    tool: Literal["iperf3"] = "iperf3"
    operation: Literal["block"] = "block"
    threads: Connections = Field(default=1, le=128, description="TCP connections")
    peers: Peers = 3
    window_kb: Number = Field(default=64, le=4096, description="of a connection, on both sides")

    @property
    def content(self) -> PeersContent:
        return PeersContent(number=self.peers)


class EchoWorkload(ScheduledWorkload):
    """Echoes between the first peer and the last, by ping; the next one once one is answered."""

    protocol: ClassVar[str] = "mesh"
    tool: Literal["ping"] = "ping"
    operation: Literal["echo"] = "echo"
    threads: Literal[1] = 1
    peers: Peers = 3
    payload_bytes: PositiveInt = Field(
        default=56, ge=16, le=65_000, description="of an echo; the first 16 hold its time"
    )
    next_to_traffic: bool = Field(
        default=False, description="iperf3 meanwhile sends as fast as it can, the same way"
    )

    @property
    def content(self) -> PeersContent:
        return PeersContent(number=self.peers)

    @property
    def disturbed(self) -> bool:
        return self.next_to_traffic


class RestartsWorkload(WorkloadBase):
    """Each peer in turn is stopped, and started again; an operation's time is until it is back."""

    protocol: ClassVar[str] = "mesh"
    tool: Literal["peer-restarts"] = "peer-restarts"
    operation: Literal["restart"] = "restart"
    threads: Literal[1] = 1
    peers: Peers = 3
    back_within_s: PositiveInt = Field(
        default=60, le=3600, description="or the run has failed: traffic flows to it again"
    )

    @property
    def content(self) -> PeersContent:
        return PeersContent(number=self.peers)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse a mesh in which no two are left when one is stopped."""
        if self.peers < 3:
            yield "peers", "at least 3: two others have traffic while one is stopped"
