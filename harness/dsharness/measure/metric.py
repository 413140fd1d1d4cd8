"""A metric: what it reads of a server, how its value follows, and its words. No I/O here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dsharness.model import Latencies, Measurement, Sample


@dataclass(frozen=True, kw_only=True)
class Words:
    """How a metric says that one candidate is worse or better; ``{}`` stands for ``N times``."""

    worse: str
    better: str

    def said(self, direction: str, times: str = "") -> str:
        """``5.40 times slower``, ``grows 5.40 times less``; without a size ``grows less``."""
        template = self.better if direction == "faster" else self.worse
        return " ".join(template.format(times).split())

    @property
    def verb(self) -> bool:
        """Whether they name what was measured: ``grows less``, not ``slower``."""
        return not self.worse.startswith("{}")

    def one(self, direction: str) -> str:
        """``the first slower one``, ``the first that grows less``: what follows ``first``."""
        comparison = self.said(direction)
        return f"that {comparison}" if self.verb else f"{comparison} one"

    @property
    def ratio(self) -> str:
        """The heading of a column of factors: ``times slower``, ``times more``."""
        return f"times {self.worse.partition('{} ')[2].split()[0]}"


SPEED = Words(worse="{} slower", better="{} faster")


class Processes(Protocol):
    """A server's processes at one moment; each answer is the sum over all of them."""

    def stat(self, field: int, /) -> int:
        """Return a field of /proc/PID/stat, by its number in proc(5)."""
        ...

    def line(self, name: str, files: str, /) -> int:
        """Return the number after ``name:`` in /proc/PID/``files``, which may be a pattern."""
        ...

    def count(self, files: str, /) -> int:
        """Return how many files /proc/PID has of that pattern."""
        ...


Probe = Callable[[Processes], float]
Probed = Mapping[Probe, float]  # what could not be read is absent


@dataclass(frozen=True, kw_only=True)
class Readings:
    """What was read of one sample, over all its runs; None where something could not be read."""

    operations: int
    active_s: float
    unit_us: float | None  # CPU time of the calibrator's fixed piece of work
    server_us: float | None  # CPU time
    client_us: float | None
    latencies: Latencies | None  # of all operations, where the load reports them
    instructions: float | None
    server_step_us: float = 0.0  # in which its CPU time was read
    start_s: float | None = None  # from the server's start to its first answer
    start_step_s: float = 0.0
    start_cpu_s: float | None = None  # that it used until then
    start_cpu_step_s: float = 0.0
    disturbances: float | None = None  # answers to others meanwhile; None: nobody else asked
    at_rest: Probed = field(default_factory=dict)  # the server before its first load
    after: Probed = field(default_factory=dict)  # and after this one
    gained: Probed = field(default_factory=dict)  # meanwhile

    def each(self, amount: float | None) -> float | None:
        """Return that of one operation."""
        return amount / self.operations if amount is not None and self.operations else None

    @property
    def cost(self) -> float | None:
        """CPU time of an operation, in units of the calibrator: a slow machine costs both."""
        return self.in_units(self.server_us)

    def in_units(self, cpu_us: float | None) -> float | None:
        """Return so much CPU time over all operations, as the cost of one."""
        share_us = self.each(cpu_us)
        return share_us / self.unit_us if share_us is not None and self.unit_us else None


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named measure with its unit and direction."""

    name: str
    value: Callable[[Readings], float | None]
    # The step in which it is read: what is meant lies within half of it on either side.
    quantum: Callable[[Readings], float | None] | None = None
    probe: Probe | None = None  # what its value needs of the server's processes
    label: str  # in a sentence: "by CPU time"
    heading: str  # of a column of its values
    title: str
    unit: str
    smaller_is_better: bool = True
    # Another metric that shows what this one cannot: CPU time does not show locks and queues.
    witness: str | None = None
    of_start: bool = False  # one value for each start: every turn begins with a new server
    of_age: bool = False  # first loads fill caches: only a server that goes on tells it
    of_server: bool = False  # all that it did, also what was not for the load's operations
    of_load: bool = False  # not usable when the load itself had no CPU left
    of_pace: bool = False  # not usable where a schedule says how many operations begin
    of_times: bool = False  # needs how long each operation took, which ldclt does not tell
    steady: bool = False  # a count of what the server itself does: it varies by less than 0.1 %
    exact: bool = False  # a count that is taken until two agree: builds of one source have the same
    of_import: bool = False  # usable also where a stopped server's entries are imported
    # Where nothing at all is a good value: differences far below this do not count.
    floor: float | None = None
    counts: str = ""  # what it counts of an operation then, in a sentence: "flushes"
    words: Words = SPEED

    def slowness(self, sample: Sample) -> float | None:
        """Return a value that is larger where it is slower; None where it was not measured."""
        value = sample.value(self.name)
        return None if value is None else self._slowness_of(value)

    def _slowness_of(self, value: float) -> float | None:
        if self.floor is not None:
            value = max(0.0, value) + self.floor
        if value <= 0:
            return None
        return value if self.smaller_is_better else 1 / value

    def slowness_range(self, sample: Sample) -> tuple[float, float] | None:
        """Return what its slowness lies between, as it is read in steps; None without a value."""
        measurement = sample.metrics.get(self.name)
        if measurement is None:
            return None
        ends = [
            self._slowness_of(measurement.value + side * measurement.quantum / 2)
            for side in (-1, 1)
        ]
        known_ends = [
            end for end in (*ends, self._slowness_of(measurement.value)) if end is not None
        ]
        return (min(known_ends), max(known_ends)) if known_ends else None

    def least_slowness(self, sample: Sample) -> float | None:
        """What its slowness is not below, where its time was up; None where that is not known."""
        bound = sample.at_least.get(self.name)
        return None if bound is None else self._slowness_of(bound.value)

    def at_slowness(self, value: float, times_slower: float) -> float:
        """Return the value of what is so many times slower than what has ``value``."""
        if self.floor is not None:
            return max(0.0, (max(0.0, value) + self.floor) * times_slower - self.floor)
        return value * times_slower if self.smaller_is_better else value / times_slower

    def telling(self, samples: Iterable[Sample]) -> tuple[Sample, ...]:
        """Return the samples that this metric can use."""
        return tuple(
            sample
            for sample in samples
            if not (self.of_load and sample.load_bound) and not (self.of_pace and sample.paced)
        )

    def measured(self, value: float, quantum: float | None = None) -> Measurement:
        return Measurement(value=value, unit=self.unit, quantum=quantum or 0.0)
