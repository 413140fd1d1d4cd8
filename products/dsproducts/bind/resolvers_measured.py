"""Name servers as resolvers: they ask an authority of the lab, with nothing in their cache or all.

The authority is a container of its own, in whose network resolver and load run too. It serves the
root and one zone of numbered names, so that a resolver begins where every resolver begins.
"""

# A kind is one word, which pyright takes for what could be set.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from dsbisect.claims.claims_lab import ClaimsLab
from dsbuilds.built_row import load_image
from dsharness.containers.container import Container, Options, running
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import InconclusiveError, InstanceError, UsageError
from dsharness.loads import LOADS, LoadReport, Schedule
from dsharness.loads.load_driver import LOST
from dsharness.machine.cgroups import UsageMeter, meter_for
from dsharness.machine.machine_lock import measuring_alone
from dsharness.matrix import find_workload
from dsharness.model import Identifier, Latencies, Transport
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline, wait_until
from dsharness.products.published_claims import Experiment, MeasurementBase
from dsharness.systems.boxed_server import LOW_PORTS
from dslab.candidates import RowSupply
from dsproducts.bind.dns_workloads import DnsperfWorkload
from dsproducts.bind.named import USER, ZONE, DnsEndpoint, host, zone_file
from dsresults.compare.trial_claims import NearestFigures
from dsresults.number_text import milliseconds, significant

ResolverPhase = Literal["cold udp", "warm udp", "warm tcp", "warm dot"]


class ResolversMeasured(MeasurementBase):
    """Name servers as resolvers, under queries by a schedule; each phase asks each name once."""

    kind: Literal["resolvers"]
    rows: tuple[Identifier, ...] = Field(min_length=1)
    authority: Identifier = Field(description="the row whose server they ask")
    workload: Identifier
    names: PositiveInt
    per_second: PositiveFloat = Field(description="queries that are begun")
    phases: tuple[ResolverPhase, ...] = Field(min_length=1, description="in this order")
    told: ResolverPhase = Field(description="whose share is our figure")
    within_ms: PositiveFloat


HOME = "127.0.0.1"
PORT, TLS_PORT = 5301, 8853
FOLDER = "/lab"
TRANSPORTS = {"udp": Transport.UDP, "tcp": Transport.TCP, "dot": Transport.TCP}
READY_S, WAIT_S = 30.0, 0.2
CODE = re.compile("[A-Z0-9]+")  # of an answer without an address; else it is a complaint: late ones
MOST_REFUSED = 0.01
CLIENTS = 10  # named lets so many TCP connections wait for it: more try again after a second
PATIENCE_S = 2  # then a query is lost
LEAST_PCT = 95.0  # of what UDP is asked: where a resolver has its CPU, all is answered

COMMON = """\
options {
    directory "/tmp"; listen-on-v6 { none; }; dnssec-validation no; querylog no; notify no;
    pid-file none; session-keyfile none; allow-query { any; };
    %s
};
controls { };
"""
AUTHORITY_CONFIG = COMMON % f"recursion no; listen-on port 53 {{ {HOME}; }};" + "".join(
    f'zone "{zone}" {{ type master; file "{FOLDER}/{file}"; }};\n'
    for zone, file in ((".", "root.zone"), (ZONE, "lab.zone"))
)
ROOT_ZONE = f"""\
$TTL 86400
@ SOA ns.root. root. 1 3600 600 86400 3600
@ NS ns.root.
ns.root. A {HOME}
{ZONE}. NS ns.root.
"""
HINTS = f". 86400 NS ns.root.\nns.root. 86400 A {HOME}\n"
LISTEN = f"recursion yes; recursive-clients 100000; listen-on port {PORT} {{ {HOME}; }};"
LISTEN_TLS = f"listen-on port {TLS_PORT} tls ephemeral {{ {HOME}; }};"
HINTED = f'zone "." {{ type hint; file "{FOLDER}/hints"; }};\n'


@dataclass(frozen=True, kw_only=True)
class PhaseFigures:
    """One phase at one resolver."""

    report: LoadReport
    asked: int
    cpu_us: float
    authority_us: float

    def within_pct(self, limit_us: float) -> float:
        """Of all that was asked, in per cent."""
        latencies = self._latencies
        fast = (
            sum(n for time_us, n in latencies.counts.items() if time_us <= limit_us)
            if latencies
            else 0
        )
        return min(100.0, 100 * fast / self.asked)

    @property
    def p95_us(self) -> float | None:
        return self._latencies.at_us(95) if self._latencies else None

    @property
    def _latencies(self) -> Latencies | None:
        parts = tuple(self.report.latencies.values())
        return Latencies.merged(parts) if parts else None


def measure_resolvers(lab: ClaimsLab, measured: ResolversMeasured) -> NearestFigures:
    """Each row's server from an empty cache on; a phase that it cannot serve is left out."""
    load = find_workload(lab.matrix, measured.workload)
    if not isinstance(load, DnsperfWorkload):
        raise UsageError(f"{load.id} asks no name server", hint="correct claims.yaml")
    changed = {
        "names": measured.names,
        "clients": CLIENTS,
        "timeout_s": PATIENCE_S,
        "outstanding": math.ceil(measured.per_second * PATIENCE_S),  # else it would not begin them
    }
    load = load.model_copy(update=changed)
    figures_by_row = {row: _row(lab, row, load, measured) for row in measured.rows}
    limit_us = 1000 * measured.within_ms
    return NearestFigures(
        what=(
            f"as resolvers of {measured.names:,} names of an authority of the lab, "
            f"{significant(measured.per_second)} queries a second, {PHASES[measured.told]}, "
            f"answered within {measured.within_ms:g} ms"
        ),
        ours=", ".join(
            f"{row}: {_short(phases[measured.told], limit_us)}"
            for row, phases in figures_by_row.items()
        ),
        lines=(
            *(
                f"{row}, {PHASES[phase]}: {_told(figures, limit_us, measured.within_ms)}"
                for row, phases in figures_by_row.items()
                for phase, figures in phases.items()
            ),
            *(
                f"{row}: this machine was busy: not all came within {PATIENCE_S} s"
                for row, phases in figures_by_row.items()
                if any(
                    phases[phase].within_pct(1e6 * PATIENCE_S) < LEAST_PCT
                    for phase in UDP_PHASES
                    if phase in phases
                )
            ),
        ),
    )


def _short(figures: PhaseFigures, limit_us: float) -> str:
    share = significant(figures.within_pct(limit_us))
    return f"{share} % for {milliseconds(figures.cpu_us)} of CPU each"


PHASES: Mapping[ResolverPhase, str] = {
    "cold udp": "UDP with an empty cache",
    "warm udp": "UDP with all names in the cache",
    "warm tcp": "TCP with all names in the cache",
    "warm dot": "TLS with all names in the cache",
}


UDP_PHASES: tuple[ResolverPhase, ...] = ("cold udp", "warm udp")


def _told(figures: PhaseFigures, limit_us: float, limit_ms: float) -> str:
    p95 = f"p95 {milliseconds(figures.p95_us)}, " if figures.p95_us else ""
    return (
        f"{significant(figures.within_pct(limit_us))} % within {limit_ms:g} ms, {p95}"
        f"{milliseconds(figures.cpu_us)} of CPU a query, of the authority "
        f"{milliseconds(figures.authority_us)}"
    )


def _row(
    lab: ClaimsLab, row: str, load: DnsperfWorkload, measured: ResolversMeasured
) -> dict[ResolverPhase, PhaseFigures]:
    def show(news: str) -> None:
        lab.observer.preparing(row, news)

    supply = RowSupply(engine=lab.engine, matrix=lab.matrix, relock=lab.relock)
    images = {name: supply.image(name, show) for name in (row, measured.authority)}
    loader = load_image(lab.engine, lab.matrix, load.tool, progress=show)
    log = logs_home() / "claims" / f"{row}-resolver.log"
    confined = Options(user=USER, memory="2g")
    with scratch_folder("resolver") as name:
        folder = Path(name)
        _write(folder, load)
        volumes = ((folder, FOLDER, "ro"),)
        with (
            running(
                lab.engine,
                images[measured.authority].reference,
                *_named("authority"),
                purpose=f"authority-{row}",
                log=log,
                keep=lab.keep,
                options=replace(confined, volumes=volumes, extra=LOW_PORTS),
            ) as authority,
            running(
                lab.engine,
                loader.reference,
                purpose=f"load-{row}",
                log=log,
                keep=lab.keep,
                options=Options(network=f"container:{authority.name}", volumes=volumes),
            ) as client,
        ):
            resolver = replace(confined, network=f"container:{authority.name}", volumes=volumes)
            figures_by_phase: dict[ResolverPhase, PhaseFigures] = {}
            with _resolver(lab, images[row].reference, row, resolver, log) as (box, encrypts):
                meters = [
                    meter_for(box_metered.state().pid, box_metered.state().id)
                    for box_metered in (box, authority)
                ]
                for phase in measured.phases:
                    if phase == "warm dot" and not encrypts:
                        continue
                    show(f"asking a resolver: {PHASES[phase]}")
                    with measuring_alone(show):
                        figures_by_phase[phase] = _phase(client, meters, load, phase, measured)
            return figures_by_phase


def _write(folder: Path, load: DnsperfWorkload) -> None:
    files = {
        **LOADS[load.tool].files(load, DnsEndpoint(port=PORT), 0),
        "authority.conf": AUTHORITY_CONFIG,
        "root.zone": ROOT_ZONE,
        "lab.zone": zone_file(load.names).replace(f"@ NS {host(0)}\n", "@ NS ns.root.\n"),
        "hints": HINTS,
        "resolver.conf": COMMON % LISTEN + HINTED,
        "encrypting.conf": COMMON % (LISTEN + LISTEN_TLS) + HINTED,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="ascii")
    folder.chmod(0o755)


def _named(config: str) -> tuple[str, ...]:
    return ("named", "-g", "-n", "1", "-c", f"{FOLDER}/{config}.conf")


@contextmanager
def _resolver(
    lab: ClaimsLab, reference: str, row: str, options: Options, log: Path
) -> Iterator[tuple[Container, bool]]:
    """A running resolver, and whether it speaks TLS: older ones refuse a configuration with it."""
    with running(
        lab.engine,
        reference,
        purpose=f"probe-{row}",
        log=log,
        options=replace(options, network="none"),
    ) as probe:
        checked = probe.execute("named-checkconf", f"{FOLDER}/encrypting.conf")
    config = "encrypting" if checked.ok else "resolver"
    with running(
        lab.engine,
        reference,
        *_named(config),
        purpose=f"resolver-{row}",
        log=log,
        options=options,
        keep=lab.keep,
    ) as box:

        def answers() -> bool | None:
            if not box.running:
                raise InstanceError(f"the resolver of {row} ended: {box.output(3)}", log=log)
            answer = box.execute(
                "dig", f"@{HOME}", "-p", str(PORT), "ns.root.", "A", "+tries=1", "+time=1"
            )
            return True if f"\t{HOME}" in answer.stdout else None

        wait_until(answers, Deadline.after(READY_S), what=f"the resolver of {row}")
        yield box, checked.ok


def _phase(
    client: Container,
    meters: Sequence[UsageMeter],
    load: DnsperfWorkload,
    phase: ResolverPhase,
    measured: ResolversMeasured,
) -> PhaseFigures:
    """Each name once, by a schedule."""
    kind = phase.split()[1]
    endpoint = DnsEndpoint(host=HOME, port=TLS_PORT if kind == "dot" else PORT)
    load = load.model_copy(update={"transport": TRANSPORTS[kind]})
    size = Schedule(per_second=measured.per_second, seconds=measured.names / measured.per_second)
    tool = LOADS[load.tool]
    argv = tool.argv(load, endpoint, FOLDER, size)
    if kind == "dot":
        argv[argv.index("-m") + 1] = kind
    before = [meter.used_us() for meter in meters]
    result = client.execute(*argv, limit_s=size.limit_s + READY_S)
    used_us = [meter.used_us() - before_us for meter, before_us in zip(meters, before, strict=True)]
    report = tool.parse(result.stdout)
    refused = {code: number for code, number in report.errors.items() if CODE.fullmatch(code)}
    if not report.total or sum(refused.values()) > MOST_REFUSED * report.total:
        why = ", ".join(f"{code} {number}" for code, number in refused.items())
        raise InconclusiveError(
            f"the resolver does not answer: {why or result.stderr[-200:]}", log=client.log
        )
    time.sleep(WAIT_S)
    cpu_us, authority_us = (total_us / report.total for total_us in used_us)
    return PhaseFigures(
        report=report,
        asked=report.total + report.errors.get(LOST, 0),
        cpu_us=cpu_us,
        authority_us=authority_us,
    )


EXPERIMENTS = (
    Experiment(
        asked=ResolversMeasured, title="name servers as resolvers", measure=measure_resolvers
    ),
)
