"""A directory that someone else runs: an instance without a home, measured in a way of its own.

Neither its CPU time nor its own count can be known, so a run is checked by what the load saw. The
result is a report, and its samples are never stored: a search could not use them.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from dsharness.containers.container import Container
from dsharness.containers.engine import Engine
from dsharness.errors import DeadlineError, UsageError, WorkloadError
from dsharness.loads import Operations
from dsharness.machine.host import CpuShares, available_cpus, machine_now
from dsharness.machine.machine_lock import measuring_alone
from dsharness.measure.gate import RunEvidence
from dsharness.measure.instance import Instance
from dsharness.measure.metrics import CLIENT_CPU
from dsharness.measure.sample import PROCEDURE, Bench, bench, run_load, sample_of, write_files
from dsharness.measure.ways import Measuring
from dsharness.model import (
    Facts,
    Image,
    LdcltWorkload,
    Procedure,
    Sample,
    Turn,
    Value,
    WayName,
    Workload,
)
from dsharness.model.stored_password import SCHEME
from dsharness.process.deadline import Deadline
from dsharness.progress import Progress
from dsharness.systems.ldap.address import LdapAddress, NamedUsers, shown_to_anyone
from dsharness.systems.ldap.directory import LdapUser
from dsharness.systems.ldap.directory_system import VERSION, LdapEndpoint

CANDIDATE = "address"  # what its logs and containers are named by
NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
HOST_NETWORK, CONTAINER_NETWORK = "host", "container:"
UNREACHABLE = "-1 "
SILENT, REFUSED = "it does not answer", "it refused a bind"
RESOLVE = "RES_OPTIONS=timeout:3 attempts:1"  # some 20 s otherwise
UNKNOWN = {
    "server CPU": "the server runs where the lab reads no cgroup: what a bind costs it is unknown",
    "server's count": "no manager's password was asked for, so its own count of binds is unread",
    "server's machine": "what else runs there, and how fast it is, is unknown",
    "network": "the time of its way there and back is part of every figure",
}


@dataclass(frozen=True, kw_only=True)
class AddressRequest:
    """Everything that will be done to the server at an address."""

    address: LdapAddress
    users: tuple[LdapUser, ...]
    network: str | None  # podman's default one
    runs: int
    operations: int  # of each run, at most
    threads: int
    limit_s: float  # of all runs together

    @property
    def workload(self) -> LdcltWorkload:
        """One run."""
        count = len(self.users)
        return LdcltWorkload(
            id="by-address",
            title=f"binds of {count} users at random",
            threads=self.threads,
            users=count,
            distinct_users=count,
            operations=self.operations,
        )

    @property
    def trial(self) -> LdcltWorkload:
        """One bind, which shows whether any succeeds."""
        return self.workload.model_copy(update={"threads": 1, "operations": 1, "distinct_users": 1})

    @property
    def endpoint(self) -> LdapEndpoint:
        return LdapEndpoint(
            host=self.address.host, port=self.address.port, users=NamedUsers(users=self.users)
        )

    @property
    def binds(self) -> int:
        """The most binds that are made in all."""
        return self.binds_of(self.trial) + self.runs * self.binds_of(self.workload)

    def binds_of(self, load: Workload) -> int:
        return self.per_thread(load) * load.threads

    def per_thread(self, load: Workload) -> int:
        return max(1, load.operations // load.threads)

    def __str__(self) -> str:
        binder = self.users[0].dn if len(self.users) == 1 else f"{len(self.users)} users"
        return (
            f"at most {self.binds} binds as {binder} at {self.address}: one to try, then "
            f"{self.runs} x {self.binds_of(self.workload)}, on {self.threads} connections at once, "
            f"within {self.limit_s:.0f} s. It only binds, and reads what anyone may read. The "
            "passwords travel unencrypted"
        )


class AddressRun(Value):
    """What the load saw of one run."""

    operations: int
    duration_s: float
    rate_per_s: float
    latency_us: float = Field(description="mean time to connect, bind and unbind")
    load_bound: bool | None = Field(description="the load had no CPU left: the rate is its own")


class AddressResult(Value):
    """Everything that can be measured of a server by its address."""

    address: str
    network: str
    users: int
    threads: int
    loader: str = Field(description="key of the image that the load came from")
    runs: tuple[AddressRun, ...]
    rate_per_s: float = Field(description="the median of the runs")
    latency_us: float = Field(description="the median of the runs")
    facts: Facts = Field(description="what it shows to anyone")
    unknown: dict[str, str] = Field(description="what cannot be known, and why")
    stopped: str | None = Field(default=None, description="why there are fewer runs than planned")


def network_for(address: LdapAddress, network: str | None) -> str | None:
    """Return the network of the load's container: the host's for what only the host reaches."""
    if network is None and address.is_loopback:
        return HOST_NETWORK
    return network


def checked_network(network: str | None) -> str | None:
    """Return a network that podman can be asked for."""
    if network is not None and (not NETWORK.fullmatch(network) or network == "none"):
        raise UsageError(
            f"--network {network}: the load would reach nothing",
            hint="host, container:NAME, or the name of one of podman's networks",
        )
    return network


@dataclass(frozen=True, kw_only=True)
class FromOutside:
    """The way of a server that someone else runs: as many binds as were promised, no warm-up."""

    name: ClassVar[WayName] = "from outside"
    paired: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    request: AddressRequest
    limit_s: float

    @property
    def cpus(self) -> CpuShares:
        """Nothing is known of the server's."""
        return CpuShares(server=(), load=available_cpus(), pinned=False)

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        size = Operations(
            per_thread=self.request.per_thread(turn.workload), limit_s=self.limit_s, strict=True
        )
        for served in benches:
            write_files(served, turn.workload, turn.number)
            with measuring():
                run = run_load(served, turn.workload, size, served.cpus)
            yield sample_of(served, turn, [run], self.objections)

    def objections(self, evidence: RunEvidence) -> tuple[str, ...]:
        """The load alone can tell: its run counts when each of its binds succeeded."""
        report = evidence.report
        if report.errors:
            error = next(iter(report.errors))
            return (f"{SILENT if error.startswith(UNREACHABLE) else REFUSED}: {error}",)
        if report.total != evidence.operations:
            return (f"the load made {report.total or 0} of {evidence.operations} binds",)
        return ()


def measure_address(
    engine: Engine,
    loader: Image,
    request: AddressRequest,
    progress: Progress,
    *,
    keep: bool = False,
) -> AddressResult:
    """Bind as often as planned and not once more; the first refused bind ends it."""
    way = FromOutside(request=request, limit_s=request.limit_s)
    instance = Instance(candidate_id=CANDIDATE, endpoint=request.endpoint, network=request.network)
    machine = machine_now(engine, way.cpus)
    procedure = Procedure(version=PROCEDURE, way=way.name, loader=loader.key)
    with bench(engine, instance, loader, way.cpus, machine, procedure, keep=keep) as served:
        found_host(served.load, request.address)
        visit = Visit(request=request, bench=served, progress=progress)
        visit.take(request.trial, number=0)
        runs, stopped = visit.runs()
    facts, unasked = _facts(request)
    return AddressResult(
        address=str(request.address),
        network=request.network or "podman's default",
        users=len(request.users),
        threads=request.threads,
        loader=loader.key,
        runs=runs,
        rate_per_s=statistics.median(run.rate_per_s for run in runs),
        latency_us=statistics.median(run.latency_us for run in runs),
        facts=facts,
        unknown=UNKNOWN | unasked,
        stopped=stopped,
    )


class Visit:
    """The turns at a server that someone else runs, and how much of their time is left."""

    def __init__(self, *, request: AddressRequest, bench: Bench, progress: Progress) -> None:
        self._request = request
        self._bench = bench
        self._progress = progress
        self._left_s = request.limit_s

    def runs(self) -> tuple[tuple[AddressRun, ...], str | None]:
        """Return all that fit into the time, and why there are no more."""
        runs: list[AddressRun] = []
        for number in range(1, self._request.runs + 1):
            try:
                sample = self.take(self._request.workload, number)
            except DeadlineError as error:
                if not runs:
                    raise
                return tuple(runs), error.message
            runs.append(_run_of(sample, self._request.threads))
            self._progress(
                f"run {number} of {self._request.runs}: {runs[-1].rate_per_s:.0f} binds/s"
            )
        return tuple(runs), None

    def take(self, workload: LdcltWorkload, number: int) -> Sample:
        """Raise WorkloadError when a single bind of it was refused."""
        way = FromOutside(request=self._request, limit_s=self._left_s)
        turn = Turn(
            campaign_id="", number=number, candidates=(CANDIDATE,), workload=workload, way=way.name
        )
        (sample,) = way.take(turn, [self._bench], self._measuring)
        if sample.valid:
            return sample
        if not self._left_s:
            raise DeadlineError(
                f"{self._request.address}: {self._request.limit_s:.0f} s were over before "
                "its binds were",
                hint="give it more time (--limit) or fewer binds (--operations)",
            )
        why = sample.invalid[0]
        named = self._request.network
        where = f"network {named}" if named else "podman's default network"
        hints = {
            SILENT: f"the load asked from {where}; --network names another one",
            REFUSED: "check the DNs and passwords; each connection ended at the first refusal",
        }
        raise WorkloadError(
            f"{self._request.address}: {why}",
            hint=hints.get(why.partition(":")[0], ""),
            log=Path(sample.log),
        )

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        """Wait for another lab, which takes nothing of the time."""
        with measuring_alone(self._progress):
            deadline = Deadline.after(self._left_s)
            yield
            self._left_s = deadline.left_s


def _run_of(sample: Sample, threads: int) -> AddressRun:
    return AddressRun(
        operations=sample.operations,
        duration_s=sample.duration_s,
        rate_per_s=sample.operations / sample.duration_s,
        # Each connection binds again as soon as it was answered: none ever waits for its turn.
        latency_us=threads * sample.duration_s / sample.operations * 1e6,
        load_bound=sample.load_bound if sample.value(CLIENT_CPU.name) is not None else None,
    )


def found_host(box: Container, address: LdapAddress) -> str:
    """Return the host in numbers, by IPv4 if it has such a one, as the load's container knows it.

    The load itself cannot distinguish an unknown name from a closed port.
    """
    result = box.execute("env", RESOLVE, "getent", "ahosts", address.host)
    numbers = [line.split()[0] for line in result.stdout.splitlines() if line.strip()]
    if not result.ok or not numbers:
        raise WorkloadError(
            f"{address}: no such host as seen from the load's container",
            hint="give the address in numbers, or --network for one in which the name is known",
            log=box.log,
        )
    return next((number for number in numbers if "." in number), numbers[0])


def _facts(request: AddressRequest) -> tuple[Facts, dict[str, str]]:
    """Return what it shows to anyone, and what stays unknown."""
    if request.network is not None and request.network.startswith(CONTAINER_NETWORK):
        why = "only the load's container reaches it"
        return {}, {"version": why, "password scheme": why}
    facts = shown_to_anyone(request.address, request.users[0].dn)
    unread = {"version": VERSION, "password scheme": SCHEME}
    why = "it does not show it without a password"
    return facts, {fact: why for fact, name in unread.items() if name not in facts}
