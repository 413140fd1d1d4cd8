"""What building and measuring leave behind: images, samples, latencies, profiles, server times.

Latencies are a histogram of high dynamic range, in microseconds. It is kept in the encoding that
HdrHistogram's ports share, so that histograms of any tool merge without loss, and other programs
read what the store keeps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import compress
from typing import Literal, Self

from hdrh.histogram import HdrHistogram
from pydantic import Field

from dsharness.errors import InconclusiveError
from dsharness.model.built import Promise, Provenance
from dsharness.model.value import Amount, Count, Finite, Value
from dsharness.model.workload import Workload

LONGEST_US = 3_600_000_000  # an hour
DIGITS = 3  # that count
MOST_TEXT = 1 << 17  # the fullest histogram takes half of it; one from an import may unpack to more


class Latencies(Value):
    """The times of many operations of one kind."""

    encoded: str = Field(max_length=MOST_TEXT, description="HdrHistogram V2, base64 of its zlib")

    @classmethod
    def of(cls, counts: Mapping[float, int]) -> Self:
        """Return how many operations took so long."""
        histogram = _empty()
        for time_us, count in counts.items():
            histogram.record_value(min(max(1, round(time_us)), LONGEST_US), count)
        return cls._kept(histogram)

    @classmethod
    def merged(cls, parts: Iterable[Latencies]) -> Self:
        """Merge them as if all their operations had been in one."""
        histogram = _empty()
        for part in parts:
            histogram.add(_unpacked(part.encoded))
        return cls._kept(histogram)

    @property
    def count(self) -> int:
        return int(_unpacked(self.encoded).get_total_count())

    @property
    def counts(self) -> Mapping[int, int]:
        """How many operations took so long, from the shortest time to the longest."""
        histogram = _unpacked(self.encoded)
        longest = histogram.get_highest_equivalent_value  # of one step
        counts = histogram.counts[:]  # as a list: most of its 10,000s are 0
        return {
            int(longest(histogram.get_value_from_index(index))): counts[index]
            for index in compress(range(len(counts)), counts)
        }

    @property
    def mean_us(self) -> float:
        return float(_unpacked(self.encoded).get_mean_value())

    def at_us(self, percent: float) -> float:
        """Return the time that so many of a hundred operations do not exceed."""
        return float(_unpacked(self.encoded).get_value_at_percentile(percent))

    def step_us(self, percent: float) -> float:
        """Return the step in which that is kept."""
        histogram, at_us = _unpacked(self.encoded), int(self.at_us(percent))
        step = histogram.get_highest_equivalent_value(at_us)
        return float(step - histogram.get_lowest_equivalent_value(at_us) + 1)

    @classmethod
    def _kept(cls, histogram: HdrHistogram) -> Self:
        return cls(encoded=histogram.encode().decode("ascii"))


def _unpacked(encoded: str) -> HdrHistogram:
    """At each question, since it is 500 times larger than its text."""
    try:
        return HdrHistogram.decode(encoded)
    except Exception as error:  # the library raises whatever it stumbles over
        raise InconclusiveError(
            f"a histogram of latencies cannot be read: {type(error).__name__}",
            hint="it was damaged or made by another program; measure its sample again",
        ) from error


def _empty() -> HdrHistogram:
    return HdrHistogram(1, LONGEST_US, DIGITS)


class Image(Value):
    """A built container image, named by the content of what went into it."""

    candidate_id: str
    reference: str
    key: str
    product: str | None = Field(default=None, description="id of the product that it serves")
    packages: dict[str, str] = Field(
        default_factory=dict, description="manifest: every installed package and its version"
    )
    build: Provenance | None = Field(default=None, description="where what was built comes from")
    promise: Promise = Field(default=Promise(), description="of the edits of its build")


# What a system says of itself, e.g. its version or how it stores a password.
Facts = dict[str, str | int]


class Measurement(Value):
    """One metric of one sample; ``dsharness.measure.metrics`` says what each name means."""

    value: Finite
    unit: str
    quantum: Amount = Field(
        default=0.0,
        exclude_if=lambda step: not step,
        description="the step in which it is read: what is meant lies within half of it either way",
    )


class ToolRuns(Value):
    """What the same operations cost one server by the lab's own tool and by another, in turn."""

    candidate_id: str
    workload_id: str
    tool: str = Field(description="the other one")
    own: tuple[Amount, ...] = Field(
        description="CPU time per operation by the lab's own, in that of a fixed piece of work"
    )
    other: tuple[Amount, ...] = Field(description="the same by the other tool")


Fact = str | int | bool | tuple[int, ...]  # about a machine


class Machine(Value):
    """What a sample was taken on; samples of one id may be paired."""

    id: str
    facts: dict[str, Fact] = Field(default_factory=dict)


WayName = Literal["duet", "in turn", "import", "callgrind", "strace", "from outside"]


class Procedure(Value):
    """How samples are taken; those of different procedures are not mixed."""

    version: int = Field(description="of the way of measuring")
    way: WayName = "in turn"
    settings: str = Field(default="", description="hash of what the settings set")
    loader: str | None = Field(default=None, description="key of the load generator's image")
    runtimes: dict[str, str] = Field(
        default_factory=dict, description="key of the image that each toolchain's builds run in"
    )


class Setup(Value):
    """What samples must share to be compared, and for a search to continue from them."""

    machine: Machine
    procedure: Procedure


class BenchFacts(Value):
    """What a sample was taken with, apart from its machine and its image."""

    procedure: Procedure
    golden: str = Field(default="", description="key of the golden state")
    notable: dict[str, str] = Field(
        default_factory=dict, description="versions of the product and its libraries"
    )
    cpu_meter: str = Field(default="", description="where the server's CPU time was read")


class Usage(Value):
    """What a server used in the course of one run: readings about four times a second."""

    at_s: tuple[Amount, ...] = Field(description="since the run began")
    cpu_us: tuple[Amount, ...] = Field(description="CPU time by then")
    memory_kib: tuple[Count, ...] = Field(description="resident memory then")


class ProgramUse(Value):
    """What one of a system's programs used in a run."""

    cpu_us: Amount
    memory_kib: Amount = Field(description="that it had at the end")


class Sample(Value):
    """One measured run. ``invalid`` lists why it may not be used; empty means valid.

    If ``disturbed`` says that something outside spoiled it, it counts against no candidate.
    """

    id: str
    campaign_id: str
    candidate_id: str
    settings_id: str
    workload_id: str
    image_key: str
    turn: Count = Field(description="candidates of one turn were measured next to each other")
    attempt: Count = Field(default=1, description="at that turn")
    started_at: str = Field(description="UTC, ISO 8601")
    session: str = Field(default="", description="one start of the lab: what it may all be off by")
    start: Count = Field(
        default=0,
        exclude_if=lambda number: not number,
        description="which start of its candidate's server in that session; 0: not known",
    )
    duration_s: Amount = Field(description="how long the load was at work")
    operations: Count
    metrics: dict[str, Measurement] = Field(description="by name; what could not be read is absent")
    at_least: dict[str, Measurement] = Field(
        default_factory=dict,
        exclude_if=lambda bounds: not bounds,
        description="of a run whose time was up: by name, what is no worse than it is",
    )
    machine: Machine
    calibrator_us: Amount | None = Field(description="CPU time of one fixed piece of work")
    steal_pct: float = Field(ge=-100, le=100)  # some kernels count backwards
    taken_pct: float | None = Field(
        default=None,
        ge=0,
        le=100,
        exclude_if=lambda share: share is None,
        description="of the server's CPUs: by other programs and the hypervisor",
    )
    server_waited_s: Amount | None = Field(
        default=None,
        exclude_if=lambda seconds: seconds is None,
        description="that its threads could have run and had no CPU, all together",
    )
    load_waited_s: Amount | None = Field(
        default=None,
        exclude_if=lambda seconds: seconds is None,
        description="the same of the load's threads",
    )
    gap_s: Amount = Field(default=0.0, description="the longest time the lab got no CPU")
    errors: Count
    per_second: tuple[Amount, ...]
    latencies: dict[str, Latencies] = Field(
        default_factory=dict, description="by kind of operation, where the load reports them"
    )
    sent: dict[str, Latencies] = Field(
        default_factory=dict,
        exclude_if=lambda latencies: not latencies,
        description="the same from when they were sent, where a schedule says when they were due",
    )
    steps: dict[str, Latencies] = Field(
        default_factory=dict,
        exclude_if=lambda latencies: not latencies,
        description="of the requests that an operation consists of, where they have names",
    )
    late: Latencies | None = Field(
        default=None,
        exclude_if=lambda late: late is None,
        description="how late the load noticed that an operation was due",
    )
    usage: tuple[Usage, ...] = Field(
        default=(), description="of each run, where the lab itself runs the server"
    )
    programs: dict[str, ProgramUse] = Field(
        default_factory=dict,
        exclude_if=lambda programs: not programs,
        description="of a system that consists of several, by what each is for",
    )
    load_bound: bool = Field(
        default=False, description="the load had no CPU left: the rate is its own"
    )
    duet: bool = Field(default=False, description="measured at the same time as its turn's other")
    invalid: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()
    facts: Facts = Field(default_factory=dict, description="what the system said of itself")
    workload: Workload | None = None
    bench: BenchFacts | None = None
    log: str = ""

    @property
    def valid(self) -> bool:
        return not self.invalid

    @property
    def others_pct(self) -> float:
        """What others took of its CPUs; a hypervisor alone, where neighbours are not known."""
        return self.steal_pct if self.taken_pct is None else self.taken_pct

    @property
    def scheduled(self) -> bool:
        """Whether its operations began by a schedule, whatever the server did."""
        return self.workload is not None and self.workload.rate is not None

    @property
    def paced(self) -> bool:
        """Whether its rate is the load's own: by a schedule, or by pauses."""
        return self.workload is not None and self.workload.paced

    def value(self, metric: str) -> float | None:
        """Return None where it was not measured."""
        measurement = self.metrics.get(metric)
        return measurement.value if measurement else None


FRAMES_APART = ";"
Frames = tuple[str, ...]  # from the root to the leaf


class CpuProfile(Value):
    """The stacks that were seen in a run of its own, which is never a sample."""

    candidate_id: str
    workload_id: str
    event: str = Field(description="what perf went by: cycles, or the clock of a CPU")
    operations: Count
    cpu_us_per_op: Amount = Field(description="of that run, in which perf itself costs a little")
    stacks: dict[str, Count] = Field(
        description="frames from the root to the leaf, with ';' between -> how often it was seen"
    )

    @property
    def seen(self) -> int:
        """How many stacks were seen."""
        return sum(self.stacks.values())

    def us_per_op(self) -> Mapping[Frames, float]:
        """The CPU time of an operation that each stack has: counts of two runs don't compare."""
        share_us = self.cpu_us_per_op / max(1, self.seen)
        return {
            tuple(stack.split(FRAMES_APART)): count * share_us
            for stack, count in self.stacks.items()
        }


def path_totals(amounts: Mapping[Frames, float]) -> Mapping[Frames, float]:
    """What each path from the root has with all that it calls; the empty one has everything."""
    within: dict[Frames, float] = defaultdict(float)
    for frames, amount in amounts.items():
        for depth in range(len(frames) + 1):
            within[frames[:depth]] += amount
    return within


class KindTimes(Value):
    """How long a server itself says that its operations of one kind took."""

    whole: Latencies = Field(description="from the request to the answer")
    waited: Latencies | None = Field(default=None, description="until a thread took it")
    worked: Latencies | None = Field(default=None, description="in that thread")
    seen: Latencies | None = Field(
        default=None,
        exclude_if=lambda latencies: latencies is None,
        description="by the load itself in that run, from when it sent each",
    )
    notes: dict[str, Count] = Field(
        default_factory=dict, description="the server's remarks, such as U: not indexed"
    )
    middle: tuple[str, ...] = Field(description="the log's lines of the operation in the middle")
    slowest: tuple[str, ...] = Field(description="and of the one that took longest")


class ServerTimes(Value):
    """What a server wrote of a run of its own, in which its log was on; never a sample."""

    candidate_id: str
    workload_id: str
    kinds: dict[str, KindTimes]

    def also_seen(self, by_load: Mapping[str, Latencies]) -> ServerTimes:
        """Add what the load says of the same kinds; an operation of several steps is no kind."""
        kinds = {
            kind: times.model_copy(update={"seen": by_load.get(kind)})
            for kind, times in self.kinds.items()
        }
        return self.model_copy(update={"kinds": kinds})


class FunctionCounts(Value):
    """How many instructions of an operation each function has, without those that it calls."""

    candidate_id: str
    workload_id: str
    operations: Count
    per_operation: dict[str, Finite]


class StayingHeap(Value):
    """Memory that stays, by where it was allocated."""

    place: tuple[str, ...] = Field(description="the function that allocated it, then its callers")
    bytes_per_operation: Finite


class HeapGrowth(Value):
    """What operations leave behind in a server's heap, in a run of its own."""

    candidate_id: str
    workload_id: str
    operations: Count
    stays: tuple[StayingHeap, ...] = Field(description="the largest first")


class WaitingPlace(Value):
    """Where threads of one name stopped, by the function that waited."""

    thread: str = Field(description="its name, without a number")
    place: tuple[str, ...] = Field(description="the function that waited, then its callers")
    per_operation: Amount


class ThreadWaits(Value):
    """Where a server's threads were put aside under a load, in a run of its own."""

    candidate_id: str
    workload_id: str
    operations: Count
    waits: tuple[WaitingPlace, ...] = Field(description="the most frequent first")
