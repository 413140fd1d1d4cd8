"""Trials at a row's own running server: stored passwords, rounds, and the ports of its clients."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsbisect.claims.claims_lab import ClaimsLab
from dsbuilds.toolchains.toolchain_image import own_tools
from dsharness.containers.container import Container, Options, running
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import CandidateError, InstanceError
from dsharness.measure.golden_state import Golden
from dsharness.measure.instance import serve
from dsharness.model import DirectoryContent
from dsharness.paths import logs_home
from dsharness.products.published_claims import PortsTried, StoredTried
from dsharness.systems import SYSTEMS, Endpoint, System
from dsharness.systems.readiness import shared_folder, wait_until_ready
from dsharness.systems.system import PasswordTrier
from dsresults.compare.stored_claims import RoundsTried, StoredFigures, StoredTrial
from dsresults.compare.trial_claims import PortFigures

TWO_USERS = DirectoryContent(number=2)
CLIENT = Path(__file__).with_name("port_client.py")
FIRST_PORT = 20_000
MOST = 4  # times as many connections as ports: then there is no limit
CLIENT_S = 200.0
CHECKS_S, CHECK_EVERY_MS = 6.0, 10
TIME_WAIT = "06"  # in /proc/net/tcp
BALANCER_FOLDER = "/balancer"
BALANCER = """
defaults
    mode tcp
    timeout connect 2s
    timeout check 2s
    timeout client 2s
    timeout server 2s
listen directory
    bind 127.0.0.1:6389
    option ldap-check
    server row 127.0.0.1:{port} check inter {every_ms}
"""


@dataclass(frozen=True, kw_only=True)
class IdleServer:
    """A container with a row's directory, in which the server is started and stopped at will."""

    box: Container
    shared: Path
    system: System

    def start(self) -> Endpoint:
        self.system.start(self.box)
        return wait_until_ready(self.box, self.shared, self.system)

    def stop(self) -> None:
        self.system.stop(self.box)


@contextmanager
def idle_server(lab: ClaimsLab, golden: Golden) -> Iterator[IdleServer]:
    """Whatever is changed there is gone afterwards."""
    system, name = SYSTEMS[golden.system], golden.image.candidate_id
    with (
        shared_folder() as shared,
        running(
            lab.engine,
            golden.reference,
            *system.idle_command(),
            purpose=f"claims-{name}",
            log=logs_home() / "claims" / f"{name}-{golden.key}.log",
            options=system.making(shared),
            keep=lab.keep,
        ) as box,
    ):
        yield IdleServer(box=box, shared=shared, system=system)


def try_stored(lab: ClaimsLab, tried: StoredTried) -> StoredFigures:
    """All rows, one after the other; one that cannot be served says why."""
    return StoredFigures(
        scheme=tried.scheme,
        rounds_scheme=tried.rounds_scheme,
        trials=tuple(_row_trial(lab, row, tried) for row in tried.rows),
    )


def _row_trial(lab: ClaimsLab, row: str, tried: StoredTried) -> StoredTrial:
    try:
        golden = lab.golden(row, TWO_USERS)
        trier = SYSTEMS[golden.system]
        if not isinstance(trier, PasswordTrier):
            raise InstanceError(f"{row} stores no passwords that can be tried out")
        lab.observer.preparing(row, f"changing the default scheme to {tried.scheme}")
        with idle_server(lab, golden) as server:
            change = trier.change_scheme(server.start(), tried.scheme)
        usual, rounds = _rounds(lab, golden, trier, tried)
    except CandidateError as error:
        lab.observer.failed(row, str(error))
        return StoredTrial(row=row, failed=str(error))
    return StoredTrial(row=row, change=change, usual_rounds=usual, rounds=rounds)


def _rounds(
    lab: ClaimsLab, golden: Golden, trier: PasswordTrier, tried: StoredTried
) -> tuple[int | None, tuple[RoundsTried, ...]]:
    """By default, and as asked; each number in a container of its own: a wrong one may end it."""
    scheme, row = tried.rounds_scheme, golden.image.candidate_id
    with idle_server(lab, golden) as server:
        try:
            usual = trier.rounds_stored(server.start(), scheme)
        except InstanceError as error:
            if not error.answered and not server.box.running:
                raise
            return None, ()
    tried_rounds = []
    for count in tried.rounds_tried:
        lab.observer.preparing(row, f"asking for {count:,} rounds of {scheme}")
        with idle_server(lab, golden) as server:
            tried_rounds.append(_asked(server, trier, scheme, count))
    return usual, tuple(tried_rounds)


def _asked(server: IdleServer, trier: PasswordTrier, scheme: str, count: int) -> RoundsTried:
    endpoint = server.start()
    try:
        trier.set_rounds(endpoint, scheme, count)
        server.stop()
        stored = trier.rounds_stored(server.start(), scheme)
    except InstanceError as error:
        return RoundsTried(asked=count, refused=error.message.splitlines()[0])
    return RoundsTried(asked=count, stored=stored)


@dataclass(frozen=True, kw_only=True)
class FewPorts:
    """Runs a server where clients have so many ports, which are used again or not."""

    ports: int
    reuse: int

    def command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        return command

    def options(self, options: Options) -> Options:
        """Of the container's own network namespace."""
        last = FIRST_PORT + self.ports - 1
        set_to = (
            f"net.ipv4.ip_local_port_range={FIRST_PORT} {last}",
            f"net.ipv4.tcp_tw_reuse={self.reuse}",
        )
        extra = (word for setting in set_to for word in ("--sysctl", setting))
        return replace(options, extra=(*options.extra, *extra))


def try_ports(lab: ClaimsLab, tried: PortsTried) -> PortFigures:
    """Once without reuse in all ways, once with it from one address, once by a balancer."""
    golden = lab.golden(tried.row, TWO_USERS)
    figures = _client(lab, golden, tried, reuse=0)
    again = _client(lab, golden, tried, reuse=1)
    checks = _health_checks(lab, golden, tried)
    return PortFigures(
        row=tried.row,
        ports=tried.ports,
        addresses=tried.addresses,
        most=MOST * tried.ports,
        reused=again["one"],
        **figures,
        **checks,
    )


def _client(lab: ClaimsLab, golden: Golden, tried: PortsTried, *, reuse: int) -> dict[str, Any]:
    """Run the client in the server's own container."""
    title = f"using up {tried.ports} ports, with net.ipv4.tcp_tw_reuse={reuse}"
    lab.observer.preparing(tried.row, title)
    few = FewPorts(ports=tried.ports, reuse=reuse)
    phases = "all" if reuse == 0 else "one"
    with (
        serve(lab.engine, golden, lab.cpus, inside=few, keep=lab.keep) as instance,
        instance.needed(),
    ):
        output = instance.container.must(
            "python3",
            "-",
            str(instance.endpoint.port),
            str(tried.addresses),
            str(MOST * tried.ports),
            phases,
            what="use up the ports",
            stdin=CLIENT.read_text(),
            limit_s=CLIENT_S,
        )
    figures: dict[str, Any] = json.loads(output)
    return figures


def _health_checks(lab: ClaimsLab, golden: Golden, tried: PortsTried) -> dict[str, Any]:
    """A balancer of the world asks the server whether it is well; nothing where none is named."""
    if lab.matrix.tools.balancer is None:
        return {}
    lab.observer.preparing(tried.row, "letting haproxy check it")

    def show(news: str) -> None:
        lab.observer.preparing(tried.row, news)

    tools = own_tools(
        lab.engine, lab.matrix, lab.matrix.tools.balancer, "balancer", "with haproxy", progress=show
    )
    few = FewPorts(ports=tried.ports, reuse=0)
    with (
        serve(lab.engine, golden, lab.cpus, inside=few, keep=lab.keep) as instance,
        instance.needed(),
        scratch_folder("haproxy") as folder,
    ):
        settings = BALANCER.format(port=instance.endpoint.port, every_ms=CHECK_EVERY_MS)
        (Path(folder) / "haproxy.cfg").write_text(settings, encoding="ascii")
        options = Options(
            network=instance.network, volumes=((Path(folder), BALANCER_FOLDER, "ro"),)
        )
        before = _opened(instance.container)
        with running(
            lab.engine,
            tools.reference,
            "haproxy",
            "-db",
            "-f",
            f"{BALANCER_FOLDER}/haproxy.cfg",
            purpose=f"balancer-{tried.row}",
            log=instance.container.log,
            options=options,
            keep=lab.keep,
        ) as box:
            time.sleep(CHECKS_S)
            output, version = box.output(), box.must("haproxy", "-v", what="ask for its version")
            if not box.running or "DOWN" in output:
                last = output.strip().splitlines()[-1:] or ["it said nothing"]
                raise InstanceError(f"haproxy found the server ill: {last[0]}", log=box.log)
            return {
                "checks": _opened(instance.container) - before,
                "checks_waiting": _waiting(instance.container, instance.endpoint.port),
                "balancer": " ".join(version.split()[:3]),
            }


def _opened(box: Container) -> int:
    """How many connections clients in its network have begun."""
    lines = box.must("cat", "/proc/net/snmp", what="count connections").splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("ActiveOpens")])


def _waiting(box: Container, port: int) -> int:
    """How many of their ports wait after connections to this one."""
    rows = box.must("cat", "/proc/net/tcp", what="look at its connections").splitlines()[1:]
    parts = (row.split()[1:4] for row in rows)
    return sum(state == TIME_WAIT and far.endswith(f":{port:04X}") for _, far, state in parts)
