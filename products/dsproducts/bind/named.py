"""BIND's named as an authoritative server of one zone that the lab generates.

The zone has numbered names, each with one address.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container
from dsharness.errors import InstanceError, MatrixError
from dsharness.model import Content, Facts
from dsharness.systems.boxed_server import MOST_BYTES, BoxedServer, InBox, answer_of, box_of
from dsharness.systems.system import Endpoint, Look, Seed, count_in
from dsproducts.bind.dns_workloads import COUNT, ZoneContent

ZONE = "lab"
WORKER_THREADS = "worker-threads"  # an option, and a fact

_FLAGS = re.compile(r"^;; flags: ([a-z ]*);", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class DnsEndpoint(Endpoint):
    """A server of one zone whose names are numbered."""

    zone: str = ZONE

    def name(self, number: int) -> str:
        return f"{host(number)}.{self.zone}."


@dataclass(frozen=True, kw_only=True)
class OwnZone(DnsEndpoint, InBox):
    """One that the lab made: named tells of itself only inside its own container."""


def host(number: int) -> str:
    return f"n{number}"


def address(number: int) -> str:
    """The one address of a name; no two names of a zone share it."""
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def zone_file(entries: int) -> str:
    """The zone; its serial is the checksum of its names, so that it vouches for them."""
    names = "".join(f"{host(number)} A {address(number)}\n" for number in range(entries))
    serial = zlib.crc32(names.encode("ascii")) or 1
    start = f"{host(0)} root {serial} 3600 600 86400 3600"
    return f"$TTL 3600\n@ SOA {start}\n@ NS {host(0)}\n{names}"


def is_answer(text: str, name: str, expected: str) -> bool:
    """Whether dig was answered with authority, and with this name's address."""
    flags = _FLAGS.search(text)
    record = rf"^{re.escape(name)}\s+\d+\s+IN\s+A\s+{re.escape(expected)}$"
    return (
        "status: NOERROR" in text
        and flags is not None
        and "aa" in flags.group(1).split()
        and re.search(record, text, re.MULTILINE) is not None
    )


FOLDER = "/var/cache/bind/lab"
PID_FILE = f"{FOLDER}/named.pid"
USER = "bind"  # made by the package: named needs no privilege at any time
PORT, CONTROL_PORT = 5300, 9530
TRANSPORTS = ("+notcp", "+tcp")

CONFIG = f"""\
include "{FOLDER}/control.key";
controls {{
    inet 127.0.0.1 port {CONTROL_PORT} allow {{ 127.0.0.1; }} keys {{ "lab"; }};
}};
options {{
    directory "{FOLDER}";
    listen-on port {PORT} {{ 127.0.0.1; }};
    listen-on-v6 {{ none; }};
    recursion no;
    allow-query {{ any; }};
    dnssec-validation no;
    notify no;
    querylog no;
    pid-file "{PID_FILE}";
    session-keyfile none;
    statistics-file "{FOLDER}/named.stats";
}};
zone "{ZONE}" {{
    type master;
    file "{FOLDER}/{ZONE}.zone";
}};
"""
# Standard input is the zone; $1 the folder, $2 the configuration, $3 the number of workers.
CREATE = f"""
umask 077
mkdir -p "$1" && cd "$1" || exit 1
tsig-keygen lab >control.key && cat >{ZONE}.zone && echo "$2" >named.conf && echo "$3" >workers &&
named-checkconf -z named.conf
"""
# Without -n, named starts as many workers as it sees CPUs: the machine's, or those of its cpuset.
SERVE = 'exec named -g -c "$1/named.conf" -n "$(cat "$1/workers")"'
CONTROL = f'control() {{ rndc -k "$1/control.key" -s 127.0.0.1 -p {CONTROL_PORT} $2; }}'
LOOK = f"""{CONTROL}
rm -f "$1/named.stats"
control "$1" status && control "$1" "zonestatus {ZONE}" && control "$1" stats &&
cat "$1/named.stats"
"""

# What named says before it gives up, as in "loading configuration: failure".
GRAVE = re.compile(r"named\.conf:\d+: |: (failure|permission denied|file not found)$|exiting \(due")

_FACTS = {
    "version": re.compile(r"^version: BIND ([!-~]{1,100})", re.MULTILINE),
    WORKER_THREADS: re.compile(r"^worker threads: (\d+)", re.MULTILINE),
    "zone-nodes": re.compile(r"^nodes: (\d+)", re.MULTILINE),
    "zone-serial": re.compile(r"^serial: (\d+)", re.MULTILINE),
}
_STATISTICS = re.compile(
    r"^\+\+\+ Statistics Dump \+\+\+.*^--- Statistics Dump ---", re.MULTILINE | re.DOTALL
)
_ANSWERED = re.compile(r"^ *(\d+) queries resulted in successful answer$", re.MULTILINE)


class Bind(BoxedServer):
    """The driver of BIND's named, from 9.16 on."""

    protocols: ClassVar[frozenset[str]] = frozenset({"dns"})
    offers: ClassVar[frozenset[str]] = frozenset({COUNT})
    port: ClassVar[int] = PORT
    revision: ClassVar[int] = 1
    user: ClassVar[str] = USER
    pid_file: ClassVar[str] = PID_FILE
    grave: ClassVar[re.Pattern[str]] = GRAVE
    creating: ClassVar[str] = "generating the zone"
    options: ClassVar[frozenset[str]] = frozenset({WORKER_THREADS})
    content: ClassVar[type[Content]] = ZoneContent
    look_operations: ClassVar[Mapping[str, int]] = {"query": 0}  # the control channel is not DNS
    search_path: ClassVar[str] = ""  # where scripts find them, if not where packages put them

    def serve_command(self) -> tuple[str, ...]:
        return self._script(SERVE)

    def create(self, box: Container, seed: Seed) -> None:
        make = self._script(CREATE, CONFIG, str(workers(seed)))
        box.must(*make, what="make the zone", stdin=zone_file(seed.holds(ZoneContent).number))

    def endpoint(self, box: Container, shared: Path) -> OwnZone:
        del shared
        return OwnZone(port=PORT, box=box)

    def ready(self, endpoint: Endpoint) -> bool:
        return _answered(endpoint, 0, TRANSPORTS[0])

    def check(self, endpoint: Endpoint, seed: Seed) -> Facts:
        """What it says of itself, once both ends of the zone were answered on both transports."""
        for number in (0, seed.holds(ZoneContent).number - 1):
            for transport in TRANSPORTS:
                if not _answered(endpoint, number, transport):
                    raise InstanceError(f"name {number} of the zone is not answered ({transport})")
        facts = self.look(endpoint).facts
        made: Facts = {
            "zone-nodes": seed.holds(ZoneContent).number + 1,
            WORKER_THREADS: workers(seed),
        }  # with its apex
        wrong = [*self.objections(made, {name: facts[name] for name in made})]
        if wrong:
            raise InstanceError(f"the server is not as it was made: {'; '.join(wrong)}")
        return facts

    def look(self, endpoint: Endpoint) -> Look:
        look = self._script(LOOK)
        return read_look(answer_of(endpoint, *look, silent="named does not answer rndc"))

    def error_log(self) -> str:
        return f"{FOLDER}/named.run"  # by -g it speaks on standard error instead

    def _script(self, text: str, *words: str) -> tuple[str, ...]:
        return ("sh", "-c", f"{self.search_path}{text}", "sh", FOLDER, *words)


class BindTree(Bind):
    """The driver of a BIND that was built from its source and copied into its image."""

    search_path: ClassVar[str] = "PATH=/opt/bind/sbin:/opt/bind/bin:$PATH\n"


def workers(seed: Seed) -> int:
    """How many worker threads the settings ask for."""
    asked = seed.settings.options.get(WORKER_THREADS, "1")
    if not re.fullmatch(r"[1-9]\d?", asked):
        raise MatrixError(
            f"settings {seed.settings.id}: {WORKER_THREADS} is {asked!r}",
            hint="give a whole number from 1 to 99",
        )
    return int(asked)


def read_look(text: str) -> Look:
    """What rndc's status and zonestatus say, and the statistics that named wrote."""
    statistics = _STATISTICS.search(text)
    found = {name: pattern.search(text) for name, pattern in _FACTS.items()}
    facts = {name: match.group(1) for name, match in found.items() if match}
    missing = [*(name for name in _FACTS if name not in facts)]
    if statistics is None or missing:
        raise InstanceError(f"named does not tell its {', '.join(missing) or 'statistics'}")
    answered = _ANSWERED.search(statistics.group())  # it leaves out what it counted nothing of
    return Look(
        facts={
            name: fact if name == "version" else count_in(fact, name)
            for name, fact in facts.items()
        },
        operations={"query": count_in(answered.group(1), "queries") if answered else 0},
    )


def _answered(endpoint: Endpoint, number: int, transport: str) -> bool:
    """Whether one name is answered as the zone has it, with authority."""
    name = DnsEndpoint(port=endpoint.port).name(number)
    done = box_of(endpoint).execute(
        "dig",
        f"@{endpoint.host}",
        "-p",
        str(endpoint.port),
        name,
        "A",
        transport,
        "+norecurse",
        "+tries=1",
        "+time=2",
        "+noall",
        "+comments",
        "+answer",
        keep_bytes=MOST_BYTES,
    )
    return done.ok and is_answer(done.stdout, name, address(number))
