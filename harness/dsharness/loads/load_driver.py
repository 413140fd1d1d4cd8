"""What the lab asks of a tool that applies a load.

A driver is a class that satisfies ``Load``, one of its product's ``PRODUCT``.

A run counts exactly as many operations as it began, so that no CPU time belongs to an operation
that was not counted. Their number follows from how fast the server was so far.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from dsharness.errors import WorkloadError
from dsharness.model import Latencies, Workload
from dsharness.systems.system import Endpoint

CUT = "what the load reports was cut off"
LOST = "lost query"  # among the errors of a report: nothing came back in time
OVER_TIME = "the time was over before its operations were"  # as ldapload says it


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Exactly this many, spread evenly over the load's threads, in at most this time."""

    per_thread: int
    limit_s: float
    strict: bool = False  # then it is ended, whatever the tool still waits for
    may_miss: ClassVar[float] = 0.0  # of its operations

    def total(self, threads: int) -> int:
        return self.per_thread * threads


@dataclass(frozen=True, kw_only=True)
class Seconds:
    """As many as fit into whole seconds; those unfinished at the end are not counted."""

    seconds: int
    strict: ClassVar[bool] = False

    @property
    def limit_s(self) -> float:
        return float(self.seconds)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Operations that begin at a fixed rate, however long their answers take: an open loop."""

    per_second: float
    seconds: float
    strict: ClassVar[bool] = False
    may_miss: ClassVar[float] = 0.02  # a load that is later than this did not keep to it

    def total(self, threads: int) -> int:  # noqa: ARG002 - all threads share the rate
        return max(1, round(self.per_second * self.seconds))

    @property
    def limit_s(self) -> float:
        """A server that answers half as many needs twice as long."""
        return 2 * self.seconds


Extent = Operations | Seconds | Schedule


@dataclass(frozen=True, kw_only=True)
class SourcePorts:
    """A load's own ports: a connection that it closes keeps one for a minute."""

    of_address: int  # that it may use: half of those that there are
    addresses: int  # that it used so far
    waiting_before: int
    waiting_after: int


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """A load's report of one run; what it did not report is None and fails the gate."""

    active_s: float | None = None  # from the start of its threads to their end
    per_second: tuple[float, ...] = ()
    total: int | None = None  # operations that were answered
    errors: Mapping[str, int] = field(default_factory=dict)
    exit_status: int | None = None
    client_cpu_us: float | None = None
    starved_us: float = 0.0  # that it could have run and had no CPU
    latencies: Mapping[str, Latencies] = field(default_factory=dict)  # by kind of operation
    sent: Mapping[str, Latencies] = field(default_factory=dict)  # from the send, by a schedule
    steps: Mapping[str, Latencies] = field(default_factory=dict)  # of an operation, by their names
    disturbances: int | None = None  # answers to others; None: nobody else asked
    ports: SourcePorts | None = None
    late: Latencies | None = None  # how late it noticed that operations were due, by its schedule
    verified: bool = False  # it compared each answer with what it must be, and counted the others
    exact: bool = False  # the server has counted each of its operations, and no other
    expired: bool = False  # its time was up before its operations were made

    @property
    def rate_per_s(self) -> float | None:
        """The rate by the time that its threads ran; without that, by its own readings."""
        seconds = self.active_s or len(self.per_second)
        return self.total / seconds if self.total and seconds else None

    @classmethod
    def joined(cls, parts: Sequence[LoadReport]) -> LoadReport:
        """What the parts of one run, which follow each other, say together."""
        kinds = dict.fromkeys(kind for part in parts for kind in part.latencies)
        late = [part.late for part in parts if part.late]
        errors = Counter[str]()
        for part in parts:
            errors.update(part.errors)
        return cls(
            active_s=sum(part.active_s or 0 for part in parts),
            total=sum(part.total or 0 for part in parts),
            errors=errors,
            client_cpu_us=sum(part.client_cpu_us or 0 for part in parts),
            starved_us=sum(part.starved_us for part in parts),
            latencies={
                kind: Latencies.merged(
                    part.latencies[kind] for part in parts if kind in part.latencies
                )
                for kind in kinds
            },
            late=Latencies.merged(late) if late else None,
        )


class Load(Protocol):
    """How one tool applies a workload, and how its output is read."""

    grace_s: ClassVar[float]  # after its limit, until it is ended
    # How the program speaks that the lab compiles; None: the row's image has the tool.
    speech: ClassVar[Path | None]

    def files(self, workload: Workload, endpoint: Endpoint, turn: int) -> Mapping[str, str]:
        """What it reads, by name; the same for both members of a pair.

        WorkloadError when this workload is not for such a system.
        """
        ...

    def argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, extent: Extent
    ) -> list[str]:
        """One run, bounded in time by itself; ``folder`` has the files."""
        ...

    def parse(self, text: str) -> LoadReport: ...

    def objections(self, report: LoadReport) -> Iterator[str]:
        """What the load itself did wrong, beyond errors and counts; never a candidate's fault."""
        ...


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One of several loads that ask the same server at the same time."""

    number: int  # from 1
    seconds: float
    per_second: float | None = None  # operations that it begins; None: as many as are answered


@runtime_checkable
class LiveLoad(Load, Protocol):
    """A load that says each second what came of it, and of which several go at once."""

    usual: ClassVar[str]  # the workload of the matrix that is taken where none is named
    most_workers: ClassVar[int]

    def live_argv(
        self, workload: Workload, endpoint: Endpoint, folder: str, worker: Worker
    ) -> list[str]:
        """One run, bounded in time by itself; its connections come from addresses of its own."""
        ...


NOW, OVER = "now ", "now over"  # how a line begins that a load says while it runs; a second's last


class LiveSeconds:
    """Takes what a load says line by line; each second is a report of its own."""

    def __init__(self, load: LiveLoad) -> None:
        self._load = load
        self._lines: list[str] = []

    def hear(self, line: str) -> LoadReport | None:
        """The second that ends with this line."""
        if line == OVER:
            text = "".join(self._lines)
            self._lines.clear()
            return self._load.parse(text)
        if line.startswith(NOW):
            self._lines.append(f"{line.removeprefix(NOW)}\n")
        return None


def last_of(pattern: re.Pattern[str], text: str) -> str | None:
    """The last of several: ldclt prints a summary at every signal and error limit."""
    matches: list[str] = pattern.findall(text)
    return matches[-1] if matches else None


_LINE = re.compile(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", re.MULTILINE)


def children_s(text: str) -> list[float]:
    """User and system seconds of the shell's finished children, for each time it was asked.

    Each answer has two lines: the shell's own time, then its children's.
    """
    return [
        60 * (float(user_min) + float(system_min)) + float(user_s) + float(system_s)
        for user_min, user_s, system_min, system_s in _LINE.findall(text)[1::2]
    ]


SLOWER = 4.0  # times slower than expected: a machine may be that busy, and the run still ends


def run_size(
    workload: Workload, rate_per_s: float | None, share: float = 1.0
) -> Operations | Schedule:
    """As many as take ``duration_s``, or ``operations`` unless that takes longer than ``most_s``.

    ``share`` is the part of a run to make: a half, when two halves make one.
    """
    if workload.rate is not None:
        return Schedule(per_second=workload.rate, seconds=share * workload.duration_s)
    rate = rate_per_s or workload.threads / workload.most_s
    operations = max(rate * workload.duration_s, min(workload.operations, rate * workload.most_s))
    per_thread = max(1, math.ceil(share * operations / workload.threads))
    expected_s = per_thread * workload.threads / rate
    return Operations(per_thread=per_thread, limit_s=SLOWER * expected_s + workload.most_s)


def unfit(workload: Workload, why: str) -> WorkloadError:
    """Return the error of a load that does not speak to such a server."""
    return WorkloadError(
        f"workload {workload.id} {why}",
        hint="choose a workload that fits the rows; `dsbisect list workloads` has all",
    )
