"""What samples are compared by. One metric decides a search; another may be its second measure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dsharness.errors import UsageError
from dsharness.model import DECIDER, Measurement, Sample
from dsharness.yaml_files.problems import suggestion


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
        said = self.said(direction)
        return f"that {said}" if self.verb else f"{said} one"

    @property
    def ratio(self) -> str:
        """Above a column of factors: ``times slower``, ``times more``."""
        return f"times {self.worse.partition('{} ')[2].split()[0]}"


SPEED = Words(worse="{} slower", better="{} faster")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named measure with its unit and direction."""

    name: str
    label: str  # in a sentence: "by CPU time"
    heading: str  # of a column of its values
    title: str
    unit: str
    smaller_is_better: bool = True
    # Another metric that shows what this one cannot: CPU time does not show locks and queues.
    witness: str | None = None
    of_load: bool = False  # not usable when the load itself had no CPU left
    # Where nothing at all is a good value: differences far below this do not count.
    floor: float | None = None
    words: Words = SPEED

    def slowness(self, sample: Sample) -> float | None:
        """Larger is slower; None where it was not measured."""
        value = sample.value(self.name)
        if value is not None and self.floor is not None:
            value = max(0.0, value) + self.floor
        if value is None or value <= 0:
            return None
        return value if self.smaller_is_better else 1 / value

    def at_slowness(self, value: float, times_slower: float) -> float:
        """The value of what is so many times slower than what has ``value``."""
        if self.floor is not None:
            return max(0.0, (max(0.0, value) + self.floor) * times_slower - self.floor)
        return value * times_slower if self.smaller_is_better else value / times_slower

    def telling(self, samples: Iterable[Sample]) -> tuple[Sample, ...]:
        """The samples that this metric can use."""
        return tuple(s for s in samples if not (self.of_load and s.load_bound))

    def measured(self, value: float) -> Measurement:
        return Measurement(value=value, unit=self.unit)


COST = Metric(
    name=DECIDER,
    label="CPU time",
    heading="cost",
    title="server CPU per operation, in units of the calibrator",
    unit="calibrator runs",
    witness="rate",
)
RATE = Metric(
    name="rate",
    label="the rate",
    heading="rate",
    title="operations a second",
    unit="1/s",
    smaller_is_better=False,
    of_load=True,
    words=Words(
        worse="answers {} fewer operations a second", better="answers {} more operations a second"
    ),
)
LATENCY = Metric(
    name="latency",
    label="latency",
    heading="latency",
    title="mean time of one operation",
    unit="µs",
    of_load=True,
    words=Words(worse="takes {} longer", better="takes {} less time"),
)
CPU = Metric(
    name="cpu",
    label="CPU time",
    heading="CPU/op",
    title="server CPU per operation",
    unit="µs",
    witness="rate",
)
CLIENT_CPU = Metric(
    name="client-cpu",
    label="CPU time of the load",
    heading="load CPU/op",
    title="CPU of the load per operation",
    unit="µs",
    words=Words(worse="costs the load {} more CPU time", better="costs the load {} less CPU time"),
)

MEMORY = Metric(
    name="memory",
    label="memory",
    heading="memory",
    title="resident memory of the server after the load",
    unit="MiB",
    words=Words(worse="uses {} more memory", better="uses {} less memory"),
)
MEMORY_AT_REST = Metric(
    name="memory-at-rest",
    label="memory at rest",
    heading="memory at rest",
    title="resident memory of the server before its first load",
    unit="MiB",
    words=Words(worse="uses {} more memory at rest", better="uses {} less memory at rest"),
)
GROWTH = Metric(
    name="growth",
    label="growth of memory",
    heading="growth/op",
    title="resident memory that the server gained per operation",
    unit="B",
    floor=64.0,
    words=Words(worse="grows {} more", better="grows {} less"),
)
FAULTS = Metric(
    name="faults",
    label="page faults",
    heading="faults/op",
    title="page faults of the server per operation, none of which read a disk",
    unit="faults",
    floor=0.01,
    words=Words(worse="has {} more page faults", better="has {} fewer page faults"),
)
INSTRUCTIONS = Metric(
    name="instructions",
    label="instructions",
    heading="instructions/op",
    title="instructions of the server per operation, outside the kernel",
    unit="instructions",
    words=Words(worse="executes {} more instructions", better="executes {} fewer instructions"),
)

_ALL = (
    COST, RATE, LATENCY, CPU, CLIENT_CPU, MEMORY, MEMORY_AT_REST, GROWTH, FAULTS, INSTRUCTIONS,
)  # fmt: skip
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


def find_metric(name: str) -> Metric:
    """The metric of that name; UsageError with the nearest one known."""
    if name not in METRICS:
        raise UsageError(
            f"no metric {name!r}.{suggestion(name, METRICS)}", hint=f"one of {', '.join(METRICS)}"
        )
    return METRICS[name]
