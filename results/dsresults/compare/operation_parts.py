"""What an operation is made of: its requests, and the programs that answer them. Pure.

Only of loads whose requests have names, and of systems of several programs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from pydantic import Field

from dsharness.model import Latencies, Sample, Value
from dsresults.compare.latency_curves import FEWEST_SLOWER
from dsresults.number_text import significant
from dsresults.page.page import Table, or_dash

PERCENTS = (50.0, 95.0, 99.0)


class RequestTimes(Value):
    """One request of an operation, of all runs together."""

    name: str
    mean_us: float
    percentiles_us: dict[float, float] = Field(
        description="as far as at least five requests took longer"
    )

    @classmethod
    def of(cls, name: str, times: Latencies) -> RequestTimes:
        enough = (p for p in PERCENTS if times.count * (100 - p) / 100 >= FEWEST_SLOWER)
        return cls(
            name=name,
            mean_us=times.mean_us,
            percentiles_us={percent: times.at_us(percent) for percent in enough},
        )


class ProgramCost(Value):
    """One program of a system; medians of the runs."""

    name: str
    cpu_us: float = Field(description="of an operation")
    memory_mib: float


class OperationParts(Value):
    """Both, of the runs that count."""

    requests: tuple[RequestTimes, ...] = ()
    programs: tuple[ProgramCost, ...] = ()

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> OperationParts:
        steps = dict.fromkeys(name for sample in samples for name in sample.steps)
        programs = dict.fromkeys(name for sample in samples for name in sample.programs)
        return cls(
            requests=tuple(
                RequestTimes.of(name, Latencies.merged(_steps(samples, name))) for name in steps
            ),
            programs=tuple(_program(samples, name) for name in programs),
        )

    @property
    def slowest(self) -> RequestTimes | None:
        """The request that takes longest, by its mean."""
        return max(self.requests, key=lambda request: request.mean_us, default=None)


def _steps(samples: Iterable[Sample], name: str) -> Iterator[Latencies]:
    return (sample.steps[name] for sample in samples if name in sample.steps)


def _program(samples: Sequence[Sample], name: str) -> ProgramCost:
    counted = [sample for sample in samples if name in sample.programs and sample.operations]
    costs = [sample.programs[name].cpu_us / sample.operations for sample in counted]
    memory = [sample.programs[name].memory_kib / 1024 for sample in counted]
    return ProgramCost(
        name=name,
        cpu_us=statistics.median(costs) if costs else 0.0,
        memory_mib=statistics.median(memory) if memory else 0.0,
    )


def parts_tables(where: str, parts: Sequence[tuple[str, OperationParts]]) -> tuple[Table, ...]:
    """One for requests and one for programs, where there are any; ``where`` heads the places."""
    requests = [
        (
            place,
            request.name,
            significant(request.mean_us / 1000),
            *(or_dash(_ms(request.percentiles_us.get(percent))) for percent in PERCENTS),
        )
        for place, part in parts
        for request in part.requests
    ]
    programs = [
        (place, one.name, significant(one.cpu_us / 1000), significant(one.memory_mib))
        for place, part in parts
        for one in part.programs
    ]
    heads = tuple(f"p{percent:g}" for percent in PERCENTS)
    tables = (
        Table(
            kind="figures-of-levels",
            caption="Requests of an operation, milliseconds; of the first one from when its "
            "operation was due, of the others from when they were sent",
            columns=(where, "request", "mean", *heads),
            rows=requests,
        ),
        Table(
            kind="figures-of-levels",
            caption="Programs of the system: CPU time of an operation in ms, memory in MiB",
            columns=(where, "program", "CPU", "memory"),
            rows=programs,
        ),
    )
    return tuple(table for table in tables if table.rows)


def _ms(time_us: float | None) -> float | None:
    return None if time_us is None else time_us / 1000
