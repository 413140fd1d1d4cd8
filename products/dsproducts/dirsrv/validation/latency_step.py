"""How long one client waits, stock and patched in turn: neither hashing nor a queue hides it.

At 100,000 rounds a bind takes tens of milliseconds of CPU, and a server with all CPUs busy answers
as often whether or not some requests sleep. Here passwords are cheap and one client is alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

from dsharness.errors import InstanceError
from dsharness.machine.host import machine_id
from dsharness.machine.machine_lock import measuring_alone
from dsproducts.dirsrv.dirsrv import PID_FILE
from dsproducts.dirsrv.validation import single_client
from dsproducts.dirsrv.validation.median_interval import (
    LEVEL,
    Interval,
    change_text,
    median_interval,
)
from dsproducts.dirsrv.validation.populated_image import Populated, populated
from dsproducts.dirsrv.validation.population import PEOPLE, SchemeUser
from dsproducts.dirsrv.validation.server_traces import observe
from dsproducts.dirsrv.validation.validated_server import ValidatedServer, validated_server
from dsresults.number_text import significant
from dsvalidate.check import Check, Figure, Gate, Status
from dsvalidate.step import SERVED, Step, judged
from dsvalidate.step_tools import EvidenceFolder, StepTools
from dsvalidate.suite import GIVE_MORE, SpeedQuestion

CHEAP = ("SSHA512", "SSHA384", "SSHA256", "SSHA", "SMD5")  # one round
# Passwords stay as they are stored, else the first bind makes them expensive.
AS_STORED = {"nsslapd-enable-upgrade-hash": "off"}
# Of a block; the servers take turns block by block, so that a busy moment meets both.
REQUESTS, BLOCKS = {"bind": 150, "search": 60, "modify": 25}, 10
SWITCHES, SLOW = "context switches", "slow"
SLOW_US = 2000.0  # a request is slow that takes so much more than the median of both sides
SWITCH_COUNTS = 'cat "/proc/$(cat "$1")"/task/*/status'
LEAST_PAIRS = 12  # 18,000 binds of each side: one in a thousand is slow 18 times
# A request is long that takes so much more than the median of both sides. It is asked in how many
# blocks there is one: a moment in which the machine stands still is one, however many it delays.
LONG_MS = (20, 100, 500)
CHANCE = 0.001  # of a difference in these by chance, for each


@dataclass(frozen=True, kw_only=True)
class LatencyLimits:
    """What is a clear difference, and what has to be excluded to say that there is none.

    In per cent of stock's figure; of slow requests, in hundredths of all. Stalls of a busy machine
    reach the mean and the last percent: these can show a difference, but need not exclude one.
    """

    clear: float
    excluded: float = math.inf


LIMITS = {
    "mean": LatencyLimits(clear=20),
    "p50": LatencyLimits(clear=20, excluded=50),
    "p99": LatencyLimits(clear=100),
    SLOW: LatencyLimits(clear=3, excluded=8),
    SWITCHES: LatencyLimits(clear=20, excluded=100),
}
ADVICE = (
    "one client alone waits longer: look for a sleep, a lock that is held longer, a file that is "
    "read or written in each request"
)


@dataclass(frozen=True, kw_only=True)
class ClientRun:
    """One server's run: microseconds of each request by kind, and how often its threads waited."""

    took_us: Mapping[str, Sequence[float]]
    switches: int

    @property
    def figures(self) -> dict[tuple[str, str], float]:
        """Return each figure, by kind of request and name of the figure."""
        figures = {
            (kind, name): value
            for kind, took in self.took_us.items()
            for name, value in summary(took).items()
        }
        return figures | {
            (SWITCHES, SWITCHES): self.switches / sum(map(len, self.took_us.values()))
        }


def summary(took_us: Sequence[float]) -> dict[str, float]:
    """Mean, median, and what one in a hundred waits longer than."""
    cuts = statistics.quantiles(took_us, n=100, method="inclusive")
    return {"mean": statistics.fmean(took_us), "p50": cuts[49], "p99": cuts[98]}


Runs = Sequence[tuple[ClientRun, ClientRun]]  # (patched, stock)


@dataclass(frozen=True, kw_only=True)
class LongRequests:
    """In how many blocks of each side a request took that much longer."""

    ms: int
    patched: int
    stock: int
    blocks: int

    @property
    def clear(self) -> bool:
        """Whether so many would hardly ever be patched's if each were as often stock's."""
        places = self.patched + self.stock
        ways = sum(math.comb(places, number) for number in range(self.patched, places + 1))
        return ways < CHANCE * (1 << places)

    def __str__(self) -> str:
        return f"{self.ms} ms more in {self.patched} of {self.blocks} blocks, stock {self.stock}"


def long_requests(pairs: Runs, kind: str) -> Iterator[LongRequests]:
    """Look for the requests that neither a median nor one in a hundred shows."""
    sides = [[pair[side_number].took_us[kind] for pair in pairs] for side_number in (0, 1)]
    middle = statistics.median(chain.from_iterable(chain.from_iterable(sides)))
    longest = [[max(block) for took in side for block in _blocks(took)] for side in sides]
    for ms in LONG_MS:
        patched, stock = (sum(seconds > middle + 1000 * ms for seconds in side) for side in longest)
        yield LongRequests(ms=ms, patched=patched, stock=stock, blocks=len(longest[0]))


def _blocks(took_us: Sequence[float]) -> Iterator[Sequence[float]]:
    size = max(1, len(took_us) // BLOCKS)
    return (took_us[start : start + size] for start in range(0, len(took_us), size))


def slow_pct(took_us: Sequence[float], both_us: Sequence[float]) -> float:
    """How many of a hundred take much longer than the median of both sides."""
    slow = statistics.median(both_us) + SLOW_US
    return 100 * sum(each > slow for each in took_us) / len(took_us)


class Client(Protocol):
    """What sends requests to one side's server."""

    def timed(self, kind: str, count: int) -> Sequence[float]: ...

    def switches(self) -> int: ...


def single_client_step(question: SpeedQuestion, evidence: EvidenceFolder) -> Step:
    """A step of its own: it needs neither the workloads nor a laboratory."""
    return Step(
        gate=Gate.PERFORMS,
        name="latency",
        title="comparing how long a single client waits",
        seconds=90.0,
        inputs=[question.max_pairs, machine_id()],
        procedures=SERVED,
        run=judged(Gate.PERFORMS, "latency", partial(run, question, evidence)),
    )


def run(question: SpeedQuestion, evidence: EvidenceFolder) -> Sequence[Check]:
    """Run both servers next to each other; one of them has work at a time."""
    tools, sides = question.tools, question.sides
    patched, stock = populated(tools, sides.patched), populated(tools, sides.stock)
    users = [cheap_user(side.population.users) for side in (patched, stock)]
    if None in users:
        sentence = f"no server stores passwords under one of {', '.join(CHEAP)}"
        return [Gate.PERFORMS.check("latency", Status.NOT_RUN, sentence)]
    pairs: list[tuple[ClientRun, ClientRun]] = []
    question.alone()
    with (
        _client(tools, evidence, patched, "patched") as patched_client,
        _client(tools, evidence, stock, "stock") as stock_client,
    ):
        tools.progress("measuring how long a single client waits, stock and patched in turn")
        for _ in range(question.max_pairs):
            with measuring_alone(tools.progress):
                pairs.append(pair_of(patched_client, stock_client))
            if len(pairs) < LEAST_PAIRS:
                continue
            if all(difference.known for difference in differences(pairs).values()):
                break
    return list(latency_checks(pairs))


def pair_of(patched_client: Client, stock_client: Client) -> tuple[ClientRun, ClientRun]:
    """A run of each at the same time, block by block, the first of them in turn."""
    clients = (patched_client, stock_client)
    before = [client.switches() for client in clients]
    took: list[dict[str, list[float]]] = [{kind: [] for kind in REQUESTS} for _ in clients]
    for block in range(BLOCKS):
        for number in (0, 1) if block % 2 else (1, 0):
            for kind, count in REQUESTS.items():
                took[number][kind] += clients[number].timed(kind, count)
    switches = [client.switches() - start for client, start in zip(clients, before, strict=True)]
    first, second = (
        ClientRun(took_us=took[number], switches=switches[number]) for number in (0, 1)
    )
    return first, second


def cheap_user(users: Sequence[SchemeUser]) -> SchemeUser | None:
    by_scheme = {user.scheme.upper(): user for user in users}
    return next((by_scheme[name] for name in CHEAP if name in by_scheme), None)


@dataclass(frozen=True, kw_only=True)
class LatencyDifference:
    """By how much a figure of the patched side is larger: an interval."""

    interval: Interval
    limits: LatencyLimits

    @property
    def clear(self) -> bool:
        return self.interval[0] > self.limits.clear

    @property
    def known(self) -> bool:
        return self.clear or self.interval[1] < self.limits.excluded


def differences(pairs: Runs) -> dict[tuple[str, str], LatencyDifference]:
    """Compare each figure, by kind of request and name of the figure."""
    more = [_more(patched_run, stock_run) for patched_run, stock_run in pairs]
    return {
        key: LatencyDifference(
            interval=median_interval([figures[key] for figures in more], LEVEL),
            limits=LIMITS[key[1]],
        )
        for key in more[0]
    }


def _more(patched_run: ClientRun, stock_run: ClientRun) -> dict[tuple[str, str], float]:
    """Return by how much each figure of one pair is larger."""
    patched_figures, stock_figures = patched_run.figures, stock_run.figures
    changes = {
        key: 100 * (patched_figures[key] / stock_figures[key] - 1)
        for key in patched_figures
        if stock_figures[key]
    }
    for kind, took in patched_run.took_us.items():
        all_took = (*took, *stock_run.took_us[kind])
        changes[kind, SLOW] = slow_pct(took, all_took) - slow_pct(stock_run.took_us[kind], all_took)
    return changes


def latency_checks(pairs: Runs) -> Iterator[Check]:
    """One for each kind of request, and one for context switches."""
    all_differences = differences(pairs)
    for kind in dict.fromkeys(kind for kind, _ in all_differences):
        of_kind = {
            name: difference for (own, name), difference in all_differences.items() if own == kind
        }
        rare = () if kind == SWITCHES else tuple(long_requests(pairs, kind))
        long = [rare_difference for rare_difference in rare if rare_difference.clear]
        clear = bool(long) or any(difference.clear for difference in of_kind.values())
        unclear = not all(difference.known for difference in of_kind.values())
        status = Status.INCONCLUSIVE if unclear else Status.PASSED
        status = Status.FAILED if clear else status
        sentence = "; ".join(
            (*(_words(name, difference) for name, difference in of_kind.items()), *map(str, long))
        )
        yield Gate.PERFORMS.check(
            "context-switches" if kind == SWITCHES else f"latency-{kind}",
            status,
            f"{_title(kind)}, in {len(pairs)} pairs of runs: {sentence}",
            advice={Status.FAILED: ADVICE, Status.INCONCLUSIVE: GIVE_MORE}.get(status, ""),
            figures=_figures(pairs, kind),
        )


def _title(kind: str) -> str:
    if kind == SWITCHES:
        return "times that the server's threads waited, for each request"
    return f"time of a {kind} by a single client with a cheap scheme"


def _words(name: str, difference: LatencyDifference) -> str:
    if name == SLOW:
        low, high = (significant(bound) for bound in difference.interval)
        return f"{low} to {high} more of a hundred take {SLOW_US / 1000:.0f} ms more"
    text = change_text(difference.interval)
    if name != SWITCHES:
        return f"{name} {text}"
    return text.replace("slower", "more").replace("faster", "fewer")


def _figures(pairs: Runs, kind: str) -> dict[str, Figure]:
    figure_pairs = [(patched_run.figures, two.figures) for patched_run, two in pairs]
    names = [name for own, name in figure_pairs[0][0] if own == kind]
    unit = "" if kind == SWITCHES else " µs"
    middle = {
        f"{name}, {side}": statistics.median(pair[number][kind, name] for pair in figure_pairs)
        for name in names
        for number, side in enumerate(("patched", "stock"))
    }
    if kind != SWITCHES:
        for number, side in enumerate(("patched", "stock")):
            took = [duration for pair in pairs for duration in pair[number].took_us[kind]]
            cuts = statistics.quantiles(took, n=1000, method="inclusive")
            middle |= {f"p99.9 of all, {side}": cuts[998], f"longest, {side}": max(took)}
    return {name: f"{significant(value)}{unit}" for name, value in middle.items()}


@dataclass(frozen=True, kw_only=True)
class LdapClient:
    """Two connections: one binds again and again, the manager does the rest."""

    server: ValidatedServer
    binding: single_client.SingleClient
    managing: single_client.SingleClient
    user: SchemeUser

    def warm(self) -> None:
        site = self.server.site
        self.managing.timed([single_client.bind(site.manager, site.manager_password)])
        for kind, count in REQUESTS.items():
            self.timed(kind, count)

    def timed(self, kind: str, count: int) -> Sequence[float]:
        """Microseconds of each of so many requests of a kind."""
        people = self.server.site.people
        names = [f"person{number % PEOPLE:03d}" for number in range(count)]
        if kind == "bind":
            request = single_client.bind(self.user.dn, self.user.password)
            return self.binding.timed([request] * count)
        if kind == "search":
            requests = [single_client.search(people, "uid", name) for name in names]
        else:
            dns = [f"uid={name},{people}" for name in names]
            requests = [single_client.replace(dn, "description", f"change of {dn}") for dn in dns]
        return self.managing.timed(requests)

    def switches(self) -> int:
        """How often the server's threads have waited so far."""
        text = self.server.box.must(
            "sh", "-c", SWITCH_COUNTS, "sh", PID_FILE, what="count context switches"
        )
        return voluntary_switches(text)


def voluntary_switches(statuses: str) -> int:
    """Add up what all threads' files in /proc say."""
    lines = (line.split() for line in statuses.splitlines())
    return sum(int(line[1]) for line in lines if line[:1] == ["voluntary_ctxt_switches:"])


@contextmanager
def _client(
    tools: StepTools, evidence: EvidenceFolder, populated_image: Populated, side: str
) -> Iterator[LdapClient]:
    user = cheap_user(populated_image.population.users)
    if user is None:
        raise InstanceError("no user has a cheap password")
    with validated_server(tools, populated_image.reference, purpose=f"latency-{side}") as server:
        server.start()
        with server.manager() as directory:
            directory.modify("cn=config", AS_STORED, optional=True)
        with (
            single_client.single_client(server.socket) as binding,
            single_client.single_client(server.socket) as managing,
        ):
            client = LdapClient(server=server, binding=binding, managing=managing, user=user)
            client.warm()
            yield client
        observe(server, evidence, f"latency-{side}", populated_image.population.users)
