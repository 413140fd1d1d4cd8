"""From samples to numbers: which candidate, when, and which value. Core pure logic."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import METRICS, RATE
from dsharness.model import Sample
from dssearch.bayes.machine_offsets import Offsets, offsets, tied
from dssearch.bayes.track import Flags, Floats, Ints, Track
from dssearch.question import History

# What makes a burden of 1, each alone.
STEAL_PCT = 10.0
STRAY = math.log(1.25)  # of the calibrator from its median
GAP_S = 1.0

BREAK_S = 1800.0  # without any run: what else the machine does may be another

MOST_STEP = 20.0  # times: what is read as one step may be nothing at all

DIGITS = 9  # what a constant factor leaves behind in the last bits must decide nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Valid samples in the order of time; values are logs, relative to the first."""

    metric: Metric
    positions: Ints  # of the measured candidates in the line, ascending
    owner: Ints  # for each sample, which of these it is
    values: Floats
    turns: Ints  # what was measured in one turn had the same speed of the machine
    sessions: Ints  # each is another start of the lab, or follows a long pause
    scales: Floats  # by which the noise of each sample is multiplied
    burden: Floats  # how disturbed the machine was, 0 where nothing did
    machines: Ints  # for each sample, which machine took it
    doubts: Floats  # by machine: the error of the offset that was taken out
    # of each run, how far below its value and above it the truth may lie: it was read in steps, or
    # the run's time was up, so that it is at least this slow
    below: Floats
    above: Floats
    apart: bool = False  # whether another machine's samples are left out: it shares no candidate
    speed_scatter: float = (
        0.0  # the deviation of the speeds that were taken out of runs without a pair
    )
    absorbed: float = 0.0  # as many runs as the speeds of turns have explained by themselves

    @cached_property
    def counts(self) -> Ints:
        return np.bincount(self.owner, minlength=len(self.positions)).astype(np.int64)

    @cached_property
    def repeated(self) -> int:
        """Return how many runs there are beyond the first of each candidate."""
        return len(self.values) - len(self.positions)

    @cached_property
    def freedom(self) -> float:
        """Return the degrees of freedom that the noise is told from."""
        return max(0.0, self.repeated - self.absorbed)

    @cached_property
    def open_ended(self) -> Flags:
        """Of each run, whether its time was up: its value is the least that it may be."""
        return np.isinf(self.above)

    @cached_property
    def errors(self) -> Floats:
        """Of each measured candidate's level, in the noise of one run."""
        worth = np.bincount(self.owner, weights=self.scales**-2.0, minlength=len(self.positions))
        return np.asarray(worth**-0.5, dtype=np.float64)

    @cached_property
    def middles(self) -> Floats:
        """The median value of each measured candidate: what its own runs alone say."""
        order = np.lexsort((self.values, self.owner))
        ranked, first = self.values[order], np.cumsum(self.counts) - self.counts
        middles: Floats = (
            ranked[first + (self.counts - 1) // 2] + ranked[first + self.counts // 2]
        ) / 2
        return middles


def evidence(metric: Metric, history: History, line: Track, low: int, high: int) -> Evidence | None:
    """Return it by a metric where every sample has it, else by rate.

    None without any sample.
    """
    ends = (low, high)
    decided = _evidence(history, line, ends, metric)
    return decided or _evidence(history, line, ends, RATE)


def witness(
    decided: Evidence, history: History, line: Track, low: int, high: int
) -> Evidence | None:
    """Return the same by the witness of the metric that decided; None where it has none."""
    name = decided.metric.witness
    if name is None:
        return None
    metric = METRICS[name]
    telling = {name: metric.telling(group) for name, group in history.samples.items()}
    free = History(samples=telling, unmeasurable=history.unmeasurable)
    return _evidence(free, line, (low, high), metric)


def _evidence(
    history: History, line: Track, ends: tuple[int, int], metric: Metric
) -> Evidence | None:
    placed_samples = sorted(_samples(history, line, metric, *ends), key=_when)
    samples = _comparable(placed_samples, ends)
    readings = [_reading(metric, sample) for _, sample in samples]
    usable = [reading for reading in readings if reading is not None]
    if not samples or len(usable) < len(readings):
        return None
    logs, below, above = (np.array(column) for column in zip(*usable, strict=True))
    positions, owner = np.unique([place for place, _ in samples], return_inverse=True)
    machines = _machines(samples)
    machine_offsets = Offsets(sizes=np.zeros(1), errors=np.zeros(1))
    if machines.max() > 0:
        machine_offsets = offsets(logs - logs[0], owner, machines)
        logs -= machine_offsets.sizes[machines]
    return Evidence(
        metric=metric,
        positions=positions.astype(np.int64),
        owner=owner.astype(np.int64),
        machines=machines,
        doubts=machine_offsets.errors,
        apart=len(samples) < len(placed_samples),
        values=np.round(logs - logs[0], DIGITS),
        turns=np.array([sample.turn for _, sample in samples], dtype=np.int64),
        sessions=_sessions([sample for _, sample in samples], machines),
        scales=np.ones(len(logs)),
        burden=burdens([sample for _, sample in samples], machines),
        below=below,
        above=above,
    )


def _reading(metric: Metric, sample: Sample) -> tuple[float, float, float] | None:
    """Return the log of a sample's slowness, and how far below and above it the truth may lie."""
    if not sample.valid:
        least = metric.least_slowness(sample)
        return (math.log(least), 0.0, math.inf) if least and least > 0 else None
    value = metric.slowness(sample)
    if not value or value <= 0:
        return None
    low, high = metric.slowness_range(sample) or (value, value)
    low = max(low, value / MOST_STEP)
    return math.log(value), math.log(value / low), math.log(max(high, value) / value)


def _comparable(
    samples: Sequence[tuple[int, Sample]], ends: tuple[int, int]
) -> Sequence[tuple[int, Sample]]:
    """Leave out samples of machines that share no candidate with the others."""
    machines = _machines(samples)
    if len(samples) == 0 or machines.max() == 0:
        return samples
    comparable = tied(np.array([place for place, _ in samples], dtype=np.int64), machines, ends)
    return [placed for placed, usable in zip(samples, comparable, strict=True) if usable]


def _machines(samples: Sequence[tuple[int, Sample]]) -> Ints:
    """Return for each sample the number of its machine, in the order of their first samples."""
    numbers: dict[str, int] = {}
    machines = [numbers.setdefault(sample.machine.id, len(numbers)) for _, sample in samples]
    return np.array(machines, dtype=np.int64)


def _sessions(samples: Sequence[Sample], machines: Ints) -> Ints:
    """Return that of each run in the order of time; pauses are not seen where times are unknown.

    Times of two machines are never compared: a clock may be an hour off.
    """
    pauses = np.zeros(len(samples), dtype=np.int64)
    with contextlib.suppress(ValueError):
        moments = [datetime.fromisoformat(sample.started_at).timestamp() for sample in samples]
        times = np.array(moments)
        for machine in np.unique(machines):
            of_machine = machines == machine
            pauses[of_machine] = np.cumsum(
                np.diff(times[of_machine], prepend=times[of_machine][0]) > BREAK_S
            )
    numbers: dict[tuple[str, int], int] = {}
    starts = (sample.session for sample in samples)
    sessions = [
        numbers.setdefault(key, len(numbers)) for key in zip(starts, pauses.tolist(), strict=True)
    ]
    return np.array(sessions, dtype=np.int64)


def burdens(samples: Sequence[Sample], machines: Ints) -> Floats:
    """Return that of each run; 0 on a machine that nothing disturbs."""
    steal = np.array([max(0.0, sample.steal_pct) for sample in samples]) / STEAL_PCT
    gap = np.array([sample.gap_s for sample in samples]) / GAP_S
    speeds = np.array([math.log(sample.calibrator_us or 1.0) for sample in samples])
    usual = np.array([np.median(speeds[machines == machine]) for machine in np.unique(machines)])
    stray = (speeds - usual[machines]) / STRAY
    return np.asarray(np.sqrt(steal**2 + gap**2 + stray**2), dtype=np.float64)


def _samples(
    history: History, line: Track, metric: Metric, low: int, high: int
) -> Iterator[tuple[int, Sample]]:
    """Yield the usable ones, and of candidates that have such those whose time was up."""
    for name, group in history.samples.items():
        place = line.index.get(name)
        if place is None or not low <= place <= high or name in history.unmeasurable:
            continue
        if any(sample.valid for sample in group):
            yield from (
                (place, sample)
                for sample in group
                if sample.valid or (metric.least_slowness(sample) or 0.0) > 0
            )


def _when(placed: tuple[int, Sample]) -> tuple[int, str, int, str]:
    place, sample = placed
    return (sample.turn, sample.started_at, place, sample.id)
