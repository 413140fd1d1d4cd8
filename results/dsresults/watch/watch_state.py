"""All that a watch has to tell: series with their tips, alarms, machines, what it cost. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from dsharness.content_key import content_key
from dsharness.model import Value
from dsresults.number_text import duration, utc, whole
from dsresults.watch.alarms import Alarm
from dsresults.watch.watched_series import (
    MachineShare,
    SeriesPoint,
    WatchedSeries,
    WatchedTip,
    points_of,
)


class WatchedBranchTips(Value):
    """One series, as it is shown."""

    series: WatchedSeries
    tips: tuple[WatchedTip, ...]

    @property
    def page(self) -> str:
        """Its file: readable, and no other series' whatever their names hold."""
        names = (self.series.branch, self.series.workload, self.series.metric)
        plain = re.sub(r"[^a-z0-9.]+", "-", "-".join(names).lower()).strip("-.")
        return f"series-{plain[:60]}-{content_key(list(names))[:6]}.html"

    @property
    def seconds(self) -> float:
        return sum(tip.seconds for tip in self.tips)

    @cached_property
    def points(self) -> tuple[SeriesPoint, ...]:
        return points_of(self.tips)

    @property
    def level(self) -> float | None:
        """The latest tip's, as a multiple of the first reference."""
        return self.points[-1].ratio if self.points else None


class MachineUse(Value):
    """What one machine did for a watch, and how much its runs of one candidate differ."""

    id: str
    text: str
    turns: int
    runs: int
    seconds: float
    noise_pct: dict[str, float]  # by metric


class WatchState(Value):
    """All that a watch has to tell."""

    id: str
    series: tuple[WatchedBranchTips, ...]
    alarms: tuple[Alarm, ...]

    @property
    def open(self) -> tuple[Alarm, ...]:
        return tuple(alarm for alarm in self.alarms if alarm.state.open)

    @cached_property
    def machines(self) -> tuple[MachineUse, ...]:
        return tuple(machine_uses(self.series))

    @property
    def seconds(self) -> float:
        """What all looks took, with what they built."""
        return sum(one_series.seconds for one_series in self.series)

    @property
    def answer(self) -> str:
        """The first sentence of every report of it."""
        tips = sum(len(one_series.tips) for one_series in self.series)
        text = (
            f"{whole(tips)} tips in {len(self.series)} series, "
            f"{duration(self.seconds)} of measuring"
        )
        if not self.open:
            return f"no alarm is open; {text}"
        return f"{len(self.open)} open: {', '.join(alarm.id for alarm in self.open)}; {text}"


def watch_state(name: str, tips: Sequence[WatchedTip], alarms: Sequence[Alarm]) -> WatchState:
    """Group tips by series, and keep the alarms of these."""
    groups: dict[str, list[WatchedTip]] = {}
    for tip in tips:
        groups.setdefault(str(tip.series) + tip.series.metric, []).append(tip)
    own_alarms = tuple(
        alarm
        for alarm in alarms
        if any(event.series and event.series.watch == name for event in alarm.events)
    )
    return WatchState(
        id=name,
        series=tuple(
            WatchedBranchTips(series=tips[0].series, tips=tuple(tips)) for tips in groups.values()
        ),
        alarms=own_alarms,
    )


def machine_uses(series: Iterable[WatchedBranchTips]) -> Iterator[MachineUse]:
    """Each machine that took a turn, the busiest first."""
    shares: dict[str, dict[str, list[MachineShare]]] = {}
    for one_series in series:
        for tip in one_series.tips:
            for share in tip.machines:
                by_metric = shares.setdefault(share.id, {})
                by_metric.setdefault(one_series.series.metric, []).append(share)
    uses = (_use(by_metric) for by_metric in shares.values())
    yield from sorted(uses, key=lambda use: -use.seconds)


def _use(by_metric: Mapping[str, Sequence[MachineShare]]) -> MachineUse:
    shares = [share for metric_shares in by_metric.values() for share in metric_shares]
    noise = {metric: _noise_pct(metric_shares) for metric, metric_shares in by_metric.items()}
    return MachineUse(
        id=shares[-1].id,
        text=shares[-1].text,
        turns=sum(share.turns for share in shares),
        runs=sum(share.runs for share in shares),
        seconds=sum(share.seconds for share in shares),
        noise_pct={
            metric: noise_pct for metric, noise_pct in noise.items() if noise_pct is not None
        },
    )


def _noise_pct(shares: Sequence[MachineShare]) -> float | None:
    """The standard deviation of one run, by the logarithm; None where none was repeated."""
    freedom = sum(share.freedom for share in shares)
    squares = sum(share.squares for share in shares)
    return 100 * math.expm1(math.sqrt(squares / freedom)) if freedom else None


def told_watch(state: WatchState) -> Iterator[str]:
    """The answer, a line for each alarm, and the latest tip of each series."""
    yield f"{state.id}: {state.answer}"
    for alarm in state.alarms:
        yield f"  {alarm.id}  {alarm.state.value:<10} {alarm.title or alarm.events[-1].note}"
    for one_series in state.series:
        last = one_series.tips[-1]
        yield f"  {one_series.series}: {last.tip[:12]} {utc(last.at)}: {last.summary}"
