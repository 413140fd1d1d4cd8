"""A mesh of one program: peers of one network, in one container.

What the container has beyond other servers' is for its interfaces alone: NET_ADMIN and the device
that they are made by. The peers themselves are started without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.errors import InstanceError
from dsharness.model import Content, Facts
from dsharness.systems.boxed_server import BoxedServer, InBox, answer_of, box_of
from dsharness.systems.ldap.directory_system import asked_number
from dsharness.systems.system import OUTPUT_NAME, SHARED_FOLDER, Endpoint, Look, Seed, count_in
from dsproducts.mesh.mesh_workloads import BLOCK_BYTES, PeersContent

FOLDER = "/var/tmp/mesh"  # noqa: S108 - of the container
SCRIPT = Path(__file__).with_name("mesh-peers")
PORT = 10_000  # of each peer, on an address of its own
MAKE_S, PEER_S = 60.0, 5.0  # to make keys, on a busy machine

MTU = "mtu"  # of an interface: an option, and a fact
# What is left of an Ethernet's 1,500 bytes behind IP and UDP, the frame inside and 24 of a tunnel.
OWN_MTU, LEAST_MTU, MOST_MTU = 1434, 576, 1500

TUNNELS = ("--device", "/dev/net/tun")
# Both ends of each packet are of this namespace, and no peer answers in place of another.
RULES = {
    "all.accept_local": 1,
    "all.rp_filter": 0,
    "default.rp_filter": 0,
    "all.arp_ignore": 1,
    "all.arp_announce": 2,
}
SYSCTLS = {
    **{f"net.ipv4.conf.{name}": str(value) for name, value in RULES.items()},
    "net.ipv4.ping_group_range": "0 0",
    "net.ipv4.tcp_timestamps": "1",
}
EXTRA = (
    *TUNNELS,
    *(part for name, value in SYSCTLS.items() for part in ("--sysctl", f"{name}={value}")),
)
CREATE = f'umask 077 && mkdir -p {FOLDER} && cd {FOLDER} && cat >mesh-peers && echo "$1" >peer'

# What a frame has before the bytes of TCP: Ethernet's, IP's and TCP's heads, with its time stamps.
HEAD_BYTES = 14 + 20 + 32
_FACTS = {
    "version": re.compile(r"^version ([!-~][ -~]{0,100})$", re.MULTILINE),
    "peers": re.compile(r"^peers (\d{1,3})$", re.MULTILINE),
    MTU: re.compile(r"^mtu (\d{1,5})$", re.MULTILINE),
}
_RESTARTS = re.compile(r"^restarts (\d+)$", re.MULTILINE)
_ICMP = re.compile(r"^Icmp: (.*InEchoReps.*)\nIcmp: ([\d ]+)$", re.MULTILINE)
_INTERFACE = re.compile(r"^ *mesh\d+: *(\d{1,18}) +(\d{1,18}) ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class MeshEndpoint(Endpoint):
    """Peers of one network, which have addresses where the load is."""


@dataclass(frozen=True, kw_only=True)
class OwnMesh(MeshEndpoint, InBox):
    """One that the lab made: it is looked at inside its own container."""


class Mesh(BoxedServer):
    """The part of a driver that is the same for all programs."""

    protocols: ClassVar[frozenset[str]] = frozenset({"mesh"})
    port: ClassVar[int] = PORT
    revision: ClassVar[int] = 1
    peer: ClassVar[Path]  # what ``mesh-peers`` needs of the program
    user: ClassVar[str] = "root"  # without a privilege but that for interfaces
    pid_file: ClassVar[str] = f"{FOLDER}/serve.pid"
    creating: ClassVar[str] = "making the peers' keys"
    options: ClassVar[frozenset[str]] = frozenset({MTU})
    content: ClassVar[type[Content]] = PeersContent
    look_operations: ClassVar[Mapping[str, int]] = {"block": 0, "echo": 0, "restart": 0}

    def serving(self, shared: Path) -> Options:
        options = super().serving(shared)
        return replace(options, capabilities=("NET_ADMIN",), extra=EXTRA)

    def serve_command(self) -> tuple[str, ...]:
        return _script("serve")

    def create(self, box: Container, seed: Seed) -> None:
        peers, script = seed.holds(PeersContent).number, SCRIPT.read_text(encoding="utf-8")
        mtu = asked_number(seed.settings, MTU, LEAST_MTU, MOST_MTU) or OWN_MTU
        bring = ("sh", "-c", CREATE, "sh", self.peer.read_text(encoding="utf-8"))
        box.must(*bring, what="bring what runs its peers", stdin=script)
        limit_s = MAKE_S + PEER_S * peers
        make = _script("make", str(peers), str(mtu))
        box.must(*make, what="make the peers' keys", limit_s=limit_s)

    def endpoint(self, box: Container, shared: Path) -> OwnMesh:
        del shared
        return OwnMesh(port=PORT, box=box)

    def ready(self, endpoint: Endpoint) -> bool:
        """Whether each peer has an answer of the next one."""
        return box_of(endpoint).execute(*_script("reach")).ok

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        """What it says of itself; all peers were reached when it became ready."""
        facts = self.look(endpoint).facts
        if facts["peers"] != seed.content.number:
            raise InstanceError(f"it has {facts['peers']} peers, not {seed.content.number}")
        return facts

    def look(self, endpoint: Endpoint) -> Look:
        return read_look(answer_of(endpoint, *_script("look"), silent="the mesh does not answer"))

    def error_log(self) -> str:
        """It writes none: its output goes here while the state is made."""
        return f"{SHARED_FOLDER}/{OUTPUT_NAME}"


def _script(*words: str) -> tuple[str, ...]:
    return ("bash", f"{FOLDER}/{SCRIPT.name}", *words)


def read_look(text: str) -> Look:
    """The version and the size, and what the kernel counted at the peers' interfaces.

    A block is counted by what came out of the mesh, without the heads of its packets.
    """
    matches = {name: pattern.search(text) for name, pattern in _FACTS.items()}
    restarts, icmp, carried = _RESTARTS.search(text), _ICMP.search(text), _INTERFACE.findall(text)
    missing = [name for name, match in matches.items() if match is None]
    if missing or restarts is None or icmp is None or not carried:
        raise InstanceError(f"the mesh does not tell its {', '.join(missing) or 'counts'}")
    icmp_counts = dict(zip(icmp[1].split(), icmp[2].split(), strict=False))
    payload = sum(int(size) - HEAD_BYTES * int(packets) for size, packets in carried)
    return Look(
        facts={
            name: match[1] if name == "version" else count_in(match[1], name)
            for name, match in matches.items()
            if match
        },
        operations={
            "block": payload // BLOCK_BYTES,
            "echo": count_in(icmp_counts["InEchoReps"], "answered echoes"),
            "restart": count_in(restarts[1], "restarts"),
        },
    )
