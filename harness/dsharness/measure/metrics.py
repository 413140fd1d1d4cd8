"""What a sample can be compared by. One metric decides a search; another may be its witness."""

from __future__ import annotations

from dataclasses import dataclass

from dsharness.model import Measurement, Sample


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named measure with its unit and direction."""

    name: str
    title: str
    unit: str
    smaller_is_better: bool = True
    # Another metric that sees what this one cannot: CPU time knows nothing of locks and queues.
    witness: str | None = None
    of_load: bool = False  # it says nothing when the load itself had no CPU left

    def slowness(self, sample: Sample) -> float | None:
        """Larger is slower; None where it was not measured."""
        value = sample.value(self.name)
        if value is None or value <= 0:
            return None
        return value if self.smaller_is_better else 1 / value

    def measured(self, value: float) -> Measurement:
        return Measurement(value=value, unit=self.unit)


COST = Metric(
    name="cost",
    title="server CPU per operation, in units of the calibrator",
    unit="calibrator runs",
    witness="rate",
)
RATE = Metric(
    name="rate",
    title="operations a second",
    unit="1/s",
    smaller_is_better=False,
    of_load=True,
)
LATENCY = Metric(name="latency", title="mean time of one operation", unit="µs", of_load=True)
CPU = Metric(name="cpu", title="server CPU per operation", unit="µs", witness="rate")
CLIENT_CPU = Metric(name="client-cpu", title="CPU of the load per operation", unit="µs")

METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (COST, RATE, LATENCY, CPU, CLIENT_CPU)
}
