"""A directory that someone else runs, measured from outside: binds, counted and timed, no more.

Neither its CPU time nor its own count can be known, so no gate can check a run: the result is a
report, not a sample that a search could use.
"""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.errors import DeadlineError, UsageError, WorkloadError
from dsharness.loads import LOADS, LoadReport, Operations
from dsharness.machine.host import available_cpus
from dsharness.machine.machine_lock import measuring_alone
from dsharness.measure.gate import load_bound
from dsharness.measure.sample import LOAD_FOLDER
from dsharness.model import Facts, Image, LdcltWorkload, Value
from dsharness.paths import logs_home
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsharness.progress import Progress
from dsharness.systems.ldap.address import LdapAddress, NamedUsers
from dsharness.systems.ldap.directory import LdapUser, read_anonymously
from dsharness.systems.ldap.directory_system import VERSION, LdapEndpoint
from dsharness.systems.ldap.stored_password import SCHEME, parse_stored
from dsharness.systems.readiness import shared_folder

NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
HOST_NETWORK, CONTAINER_NETWORK = "host", "container:"
# ldclt repeats a refused user's password, and what a load says is kept in a log.
HIDE = '"$@" 2>&1 | sed "s/ldap_simple_bind_s (.*), error=/ldap_simple_bind_s (…), error=/"'
UNREACHABLE = "-1 "
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

    def binds_of(self, load: LdcltWorkload) -> int:
        return self.per_thread(load) * load.threads

    def per_thread(self, load: LdcltWorkload) -> int:
        return max(1, load.operations // load.threads)

    def __str__(self) -> str:
        who = self.users[0].dn if len(self.users) == 1 else f"{len(self.users)} users"
        return (
            f"at most {self.binds} binds as {who} at {self.address}: one to try, then "
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


def network_for(address: LdapAddress, wanted: str | None) -> str | None:
    """The network of the load's container: the host's for what only the host reaches."""
    if wanted is None and address.is_loopback:
        return HOST_NETWORK
    return wanted


def checked_network(wanted: str | None) -> str | None:
    """A network that podman can be asked for."""
    if wanted is not None and (not NETWORK.fullmatch(wanted) or wanted == "none"):
        raise UsageError(
            f"--network {wanted}: the load would reach nothing",
            hint="host, container:NAME, or the name of one of podman's networks",
        )
    return wanted


def load_options(network: str | None, folder: Path) -> Options:
    """How the load's container is confined: it has a network, and reads what it needs."""
    return Options(network=network, volumes=((folder, LOAD_FOLDER, "ro"),))


def measure_address(
    engine: Engine,
    loader: Image,
    request: AddressRequest,
    progress: Progress,
    *,
    keep: bool = False,
) -> AddressResult:
    """Bind as often as planned and not once more; the first refused bind ends it."""
    with shared_folder() as folder:
        options = load_options(request.network, folder)
        with running(
            engine, loader.reference, "sleep", "infinity",
            purpose="load-address", log=logs_home() / "load" / "address.log",
            options=options, keep=keep,
        ) as box:  # fmt: skip
            _check_name(box, request.address)
            client = LoadClient(request=request, box=box, folder=folder, progress=progress)
            client.run(request.trial, turn=0)
            runs, stopped = client.runs()
    rates = [run.rate_per_s for run in runs]
    facts, unasked = _facts(request)
    return AddressResult(
        address=str(request.address),
        network=request.network or "podman's default",
        users=len(request.users),
        threads=request.threads,
        loader=loader.key,
        runs=runs,
        rate_per_s=statistics.median(rates),
        latency_us=statistics.median(run.latency_us for run in runs),
        facts=facts,
        unknown=UNKNOWN | unasked,
        stopped=stopped,
    )


class LoadClient:
    """The load's container, and how much of its time is left."""

    def __init__(
        self, *, request: AddressRequest, box: Container, folder: Path, progress: Progress
    ) -> None:
        self._request = request
        self._box = box
        self._folder = folder
        self._progress = progress
        self._left_s = request.limit_s

    def runs(self) -> tuple[tuple[AddressRun, ...], str | None]:
        """All that fit into the time, and why there are no more."""
        taken: list[AddressRun] = []
        for turn in range(1, self._request.runs + 1):
            try:
                report = self.run(self._request.workload, turn)
            except DeadlineError as error:
                if not taken:
                    raise
                return tuple(taken), error.message
            taken.append(_measured(report, self._request.workload))
            self._progress(
                f"run {turn} of {self._request.runs}: {taken[-1].rate_per_s:.0f} binds/s"
            )
        return tuple(taken), None

    def run(self, workload: LdcltWorkload, turn: int) -> LoadReport:
        """One run; WorkloadError when a single bind of it was refused."""
        load, endpoint = LOADS[workload.tool], self._request.endpoint
        per_thread = self._request.per_thread(workload)
        for name, text in load.files(workload, endpoint, turn).items():
            with writing(self._folder / name):
                (self._folder / name).write_text(text, encoding="utf-8")
        with measuring_alone(self._progress):
            deadline = Deadline.after(self._left_s)
            extent = Operations(per_thread=per_thread, limit_s=self._left_s)
            argv = load.argv(workload, endpoint, LOAD_FOLDER, extent)
            done = self._box.execute("sh", "-c", HIDE, "sh", *argv, limit_s=self._left_s)
            self._left_s = deadline.left_s
        if done.timed_out:
            raise DeadlineError(
                f"{self._request.address}: {self._request.limit_s:.0f} s were over before "
                "its binds were",
                hint="give it more time (--limit) or fewer binds (--operations)",
            )
        report = load.parse(done.stdout)
        _refuse(report, self._request.binds_of(workload), self._request, self._box.log)
        return report


def _refuse(report: LoadReport, wanted: int, request: AddressRequest, log: Path) -> None:
    """A run counts when each of its binds succeeded."""
    if report.errors:
        error = next(iter(report.errors))
        if error.startswith(UNREACHABLE):
            where = f"network {request.network}" if request.network else "podman's default network"
            raise WorkloadError(
                f"{request.address} does not answer: {error}",
                hint=f"the load asked from {where}; --network names another one",
                log=log,
            )
        raise WorkloadError(
            f"{request.address} refused a bind: {error}",
            hint="check the DNs and passwords; each connection ended at the first refusal",
            log=log,
        )
    if report.total != wanted:
        raise WorkloadError(
            f"{request.address}: the load made {report.total or 0} of {wanted} binds", log=log
        )


def _measured(report: LoadReport, workload: LdcltWorkload) -> AddressRun:
    total, seconds = report.total or 0, report.active_s or float(len(report.per_second))
    client_us, cpus = report.client_cpu_us, len(available_cpus())
    return AddressRun(
        operations=total,
        duration_s=seconds,
        rate_per_s=total / seconds,
        # Each connection binds again as soon as it was answered: none ever waits for its turn.
        latency_us=workload.threads * seconds / total * 1e6,
        load_bound=load_bound(client_us, seconds, cpus) if client_us is not None else None,
    )


def _check_name(box: Container, address: LdapAddress) -> None:
    """The load itself cannot distinguish an unknown name from a closed port."""
    if not box.execute("env", RESOLVE, "getent", "ahosts", address.host).ok:
        raise WorkloadError(
            f"{address}: no such host as seen from the load's container",
            hint="give the address in numbers, or --network for one in which the name is known",
            log=box.log,
        )


def _facts(request: AddressRequest) -> tuple[Facts, dict[str, str]]:
    """What it shows to anyone, and what stays unknown."""
    if request.network is not None and request.network.startswith(CONTAINER_NETWORK):
        why = "only the load's container reaches it"
        return {}, {"version": why, "password scheme": why}
    answer = read_anonymously(request.address.host, request.address.port, request.users[0].dn)
    facts: Facts = {VERSION: answer["vendorVersion"][0]} if "vendorVersion" in answer else {}
    if "userPassword" in answer:
        facts |= parse_stored(answer["userPassword"][0]).facts
    unread = {"version": VERSION, "password scheme": SCHEME}
    why = "it does not show it without a password"
    return facts, {what: why for what, name in unread.items() if name not in facts}
