"""One row against itself: measured as a search measures two rows, so that only noise differs.

How much each metric varies then, and what that hides, is the study's result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field
from scipy.special import nctdtrinc, stdtrit

from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.containers.engine import Engine
from dsharness.errors import InconclusiveError
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import METRICS
from dsharness.model import Image, Sample, SystemName, Value
from dsharness.progress import Progress
from dslab.campaign_loop import CampaignOrder
from dslab.candidates import RowSupply
from dslab.laboratory import refuse_failed
from dslab.watcher import Watcher
from dsresults.compare.comparison_table import pairs
from dsresults.store import Store
from dssearch.planner import Rounds
from dssearch.question import History, Question

AGAIN = "-again"


@dataclass(frozen=True, kw_only=True)
class NoiseRequest(RowsAsked):
    """Which row to measure against itself, and how many runs of each side shall count."""

    row: str
    runs: int
    keeps: bool = True  # a server from one turn to the next

    @property
    def line(self) -> tuple[str, str]:
        return self.row, f"{self.row}{AGAIN}"


@dataclass(frozen=True, kw_only=True)
class TwinSupply(RowSupply):
    """The same row under a second name."""

    twin: str

    def image(self, candidate: str, progress: Progress) -> Image:
        image = super().image(self._row(candidate), progress)
        return image.model_copy(update={"candidate_id": candidate})

    def system(self, candidate: str) -> SystemName:
        return super().system(self._row(candidate))

    def _row(self, candidate: str) -> str:
        return candidate.removesuffix(AGAIN) if candidate == self.twin else candidate


def measure_noise(
    request: NoiseRequest, engine: Engine, store: Store, watcher: Watcher
) -> list[Sample]:
    """All runs of both sides; what was interrupted continues. Only whole valid pairs count."""
    supply = TwinSupply(
        engine=engine, matrix=request.matrix, relock=request.relock, twin=request.line[1]
    )
    with row_lab(
        request, request.line, 1, engine=engine, store=store, watcher=watcher, supply=supply
    ) as laboratory:
        refuse_failed(laboratory)
        order = CampaignOrder(
            question=Question(
                series_id=request.row,
                line=request.line,
                workload_id=request.workloads[0].id,
                settings_id=request.settings.id,
                metric=request.metric,
            ),
            workload=request.workloads[0],
            search=whole_pairs(request.line, request.runs, keeps=request.keeps),
            lab=laboratory,
            store=store,
            kind="measure",
        )
        return store.samples(campaign_id=order.run(watcher).id)


def whole_pairs(line: Sequence[str], number: int, *, keeps: bool = True) -> Rounds:
    """Turns until so many have two valid runs; InconclusiveError where one side fails again."""
    first, second = line

    def missing(history: History) -> int:
        for name, why in history.failed.items():
            raise InconclusiveError(
                f"{name} cannot be measured against itself: {why}",
                hint="remove the cause; the same command continues from the stored runs",
            )
        return number - len(pairs(history.of(first), history.of(second)))

    return Rounds(missing=missing, keeps=keeps)


PAIRS = 10  # of 20 runs
CONFIDENCE = 0.95
POWER = 0.8
MAD_TO_SD = 1.4826  # of a normal distribution


class MetricNoise(Value):
    """One metric of a row that was measured against itself."""

    metric: str
    unit: str
    runs: int
    mean: float
    cv_pct: float | None = Field(description="standard deviation over mean; None: the mean is 0")
    robust_cv_pct: float | None = Field(description="the same by medians: odd runs count little")
    pairs: int
    pair_sd: float | None = Field(description="of the logarithm of a pair's ratio; None: one pair")
    smallest_pct: float | None = Field(description="that 20 runs would show, by how many % worse")
    smallest: float | None = Field(description="the same, in the metric's unit")


def smallest_change(pair_sd: float, number: int = PAIRS) -> float:
    """The ratio that so many pairs of runs show with 95 % confidence in 80 % of all tries.

    A paired Student test of the logarithms: with n pairs whose log ratios vary by s, a change of
    log d is found when |mean| > t * s / sqrt(n), where t is Student's 97.5 % point of n - 1
    degrees of freedom. The mean over s / sqrt(n) has a noncentral Student distribution with the
    noncentrality c = d * sqrt(n) / s. The c with which it exceeds t in 80 % of all tries solves
    F(t; n - 1, c) = 20 %, and the ratio is exp(c * s / sqrt(n)).
    """
    freedom = number - 1
    limit = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    noncentrality = float(nctdtrinc(freedom, 1 - POWER, limit))
    return math.exp(noncentrality * pair_sd / math.sqrt(number))


def noise_of(first: Sequence[Sample], second: Sequence[Sample]) -> tuple[MetricNoise, ...]:
    """Every metric that these valid runs of one row give, apart from those of a server's start.

    The servers stay the same from turn to turn, so a start's own values are one reading each.
    """
    metrics = [metric for metric in METRICS.values() if not metric.of_start]
    noises = (_noise(metric, first, second) for metric in metrics)
    return tuple(noise for noise in noises if noise is not None)


def _noise(metric: Metric, first: Sequence[Sample], second: Sequence[Sample]) -> MetricNoise | None:
    runs = metric.telling(sample for sample in (*first, *second) if sample.valid)
    values = [value for sample in runs if (value := sample.value(metric.name)) is not None]
    if len(values) < 2:
        return None
    logs = [
        math.log(first_slowness / second_slowness)
        for a, b in pairs(metric.telling(first), metric.telling(second))
        if (first_slowness := metric.slowness(a)) and (second_slowness := metric.slowness(b))
    ]
    mean, middle = statistics.fmean(values), statistics.median(values)
    stray = statistics.median(abs(value - middle) for value in values)
    sd = statistics.stdev(logs) if len(logs) > 1 else None
    ratio = smallest_change(sd) if sd is not None else None
    return MetricNoise(
        metric=metric.name,
        unit=metric.unit,
        runs=len(values),
        mean=mean,
        cv_pct=100 * statistics.stdev(values) / abs(mean) if mean else None,
        robust_cv_pct=100 * MAD_TO_SD * stray / abs(middle) if middle else None,
        pairs=len(logs),
        pair_sd=sd,
        smallest_pct=100 * (ratio - 1) if ratio is not None and metric.floor is None else None,
        smallest=abs(metric.at_slowness(mean, ratio) - mean) if ratio is not None else None,
    )
