"""What a standing watch has seen of its series: each tip, with its answer and its runs. Pure.

It is a log that only grows: each answer is a finding of its own. A tip keeps what a page shows of
its samples, since those of a year are too many to be read for each page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, Self

from pydantic import Field

from dsharness.model import Finding, Machine, Sample, Value
from dsresults.moved_packages import MovedPackages
from dsresults.stored_value import values_of

LATEST = 5  # states of a series that may still be there


class WatchedSeries(Value):
    """One line of measurements: a branch, or a row whose packages move, under a workload."""

    watch: str
    branch: str = Field(description="or a row's id")
    workload: str
    metric: str

    def __str__(self) -> str:
        return f"{self.branch} with {self.workload}"


class WatchedTurn(NamedTuple):
    """A turn's samples, as a page shows them."""

    campaign: int  # its place among the tip's campaigns
    number: int
    machine: str
    seconds: float  # from the first run's begin to the last one's end
    runs: tuple[tuple[str, float | None], ...]  # candidate and value; None: not usable


class PackedTurns(Value):
    """All turns of a tip as one text, since a page of a whole watch asks for none of them."""

    packed: str = Field(default="[]", description="JSON of lists, in the order of `WatchedTurn`")

    @classmethod
    def of(cls, turns: Sequence[WatchedTurn]) -> Self:
        return cls(packed=json.dumps(turns, separators=(",", ":")))

    @property
    def turns(self) -> tuple[WatchedTurn, ...]:
        lists: list[tuple[int, int, str, float, list[tuple[str, float | None]]]]
        lists = json.loads(self.packed)
        return tuple(
            WatchedTurn(campaign, number, machine, seconds, tuple((n, v) for n, v in runs))
            for campaign, number, machine, seconds, runs in lists
        )


class MachineShare(Value):
    """What one machine did for a tip."""

    id: str
    text: str = Field(default="", description="what it is")
    turns: int
    runs: int
    seconds: float = Field(description="that it ran the load, or waited between two runs of a turn")
    squares: float = Field(description="of what runs of one candidate differ by, as logarithms")
    freedom: int = Field(description="how many of these differences are independent")


class WatchedTip(Value):
    """A branch's newest commit, or a row's packages, measured next to the series' reference."""

    series: WatchedSeries
    at: str = Field(description="UTC, ISO 8601: when the answer stood")
    reference: str = Field(description="the commit that it was compared with")
    tip: str
    subject: str = ""
    committed: str = Field(default="", description="the tip's date")
    direction: Literal["slower", "faster", "none", "unknown", "impossible"]
    effect: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    smallest_pct: float | None = Field(default=None, description="that it could have seen")
    named: str | None = Field(default=None, description="the commit behind a difference")
    proved: bool | None = None
    summary: str
    campaigns: tuple[str, ...] = ()
    seconds: float = Field(default=0.0, description="that the look took, with builds")
    commit_page: str = Field(default="", description="where a hash makes a commit's page of it")
    turns: PackedTurns = PackedTurns()
    machines: tuple[MachineShare, ...] = ()
    moved: MovedPackages | None = Field(
        default=None, description="a row's: what differs from its reference; tips are images' keys"
    )

    @property
    def differs(self) -> bool:
        return self.direction in {"slower", "faster"}

    @property
    def log_ratio(self) -> float:
        """Above 0 where the tip is worse; 0 where no difference was found."""
        if not self.differs or not self.effect:
            return 0.0
        return math.log(self.effect) * (1 if self.direction == "slower" else -1)

    def page_of(self, commit: str) -> str | None:
        """Where its forge shows it, if that is known."""
        return f"{self.commit_page}{commit}" if self.commit_page.startswith("https://") else None

    @property
    def finding(self) -> Finding:
        return Finding.now(
            "watched", self, title=f"{self.series}: {self.tip[:12]}", answer=self.summary
        )


def turns_of(
    samples: Iterable[Sample], campaigns: Sequence[str], metric: str
) -> tuple[WatchedTurn, ...]:
    """The samples of these campaigns by turn, in order."""
    places = {campaign: place for place, campaign in enumerate(campaigns)}
    groups: dict[tuple[int, int, int, str], list[Sample]] = {}
    for sample in samples:
        key = (places[sample.campaign_id], sample.turn, sample.attempt, sample.machine.id)
        groups.setdefault(key, []).append(sample)
    return tuple(
        WatchedTurn(
            campaign=place,
            number=number,
            machine=machine,
            seconds=round(_spanned_s(group), 1),
            runs=tuple(
                (sample.candidate_id, sample.value(metric) if sample.valid else None)
                for sample in group
            ),
        )
        for (place, number, _, machine), group in sorted(groups.items(), key=lambda entry: entry[0])
    )


def _spanned_s(samples: Sequence[Sample]) -> float:
    """What a machine was busy for: two that run at the same time count once."""
    begun_s = [datetime.fromisoformat(sample.started_at).timestamp() for sample in samples]
    ended_s = (
        start_s + sample.duration_s for start_s, sample in zip(begun_s, samples, strict=True)
    )
    return max(ended_s) - min(begun_s)


def machine_shares(
    turns: Sequence[WatchedTurn], machines: Iterable[Machine]
) -> tuple[MachineShare, ...]:
    """What each machine did in these turns."""
    texts = {machine.id: machine_text(machine) for machine in machines}
    names = dict.fromkeys(turn.machine for turn in turns)
    return tuple(
        _share(name, texts.get(name, ""), [turn for turn in turns if turn.machine == name])
        for name in names
    )


def _share(name: str, text: str, turns: Sequence[WatchedTurn]) -> MachineShare:
    logs: dict[tuple[int, str], list[float]] = {}
    for turn in turns:
        for candidate, value in turn.runs:
            if value is not None and value > 0:
                logs.setdefault((turn.campaign, candidate), []).append(math.log(value))
    means = {key: sum(values) / len(values) for key, values in logs.items()}
    return MachineShare(
        id=name,
        text=text,
        turns=len(turns),
        runs=sum(len(turn.runs) for turn in turns),
        seconds=round(sum(turn.seconds for turn in turns), 1),
        squares=sum((value - means[key]) ** 2 for key, values in logs.items() for value in values),
        freedom=sum(len(values) - 1 for values in logs.values()),
    )


def machine_text(machine: Machine) -> str:
    """``AMD EPYC, 2 CPUs, kernel 6.12.0``, as far as it is known."""
    facts, cpus = machine.facts, machine.facts.get("cpu_count")
    parts = (
        facts.get("cpu_model"),
        f"{cpus} CPUs" if cpus else None,
        f"kernel {facts['kernel']}" if facts.get("kernel") else None,
    )
    return ", ".join(str(part) for part in parts if part)


def moment() -> str:
    """Now, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def tips_of(findings: Iterable[Finding], watch: str) -> tuple[WatchedTip, ...]:
    """All tips of a watch in the order of their answers."""
    tips = values_of(WatchedTip, (finding for finding in findings if finding.kind == "watched"))
    return tuple(sorted((tip for tip in tips if tip.series.watch == watch), key=lambda tip: tip.at))


def tips_of_series(findings: Iterable[Finding], series: WatchedSeries) -> list[WatchedTip]:
    """Those of one series."""
    return [tip for tip in tips_of(findings, series.watch) if tip.series == series]


def watches_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The ids of all watches that have seen a tip, or search for what a first one has shown."""
    kinds = {"watched", "alarm"}
    series = (finding.value.get("series") for finding in findings if finding.kind in kinds)
    return tuple(
        sorted(
            {
                str(series_value["watch"])
                for series_value in series
                if isinstance(series_value, dict)
            }
        )
    )


def next_reference(tips: Sequence[WatchedTip], first: str) -> str:
    """What the next tip of a series is compared with: pinned, until a difference was found.

    So that what creeps in by steps too small to be seen is seen in the end. After a named commit
    it is that commit; after one that was not named, the tip that differed.
    """
    differing = [tip for tip in tips if tip.differs]
    return (differing[-1].named or differing[-1].tip) if differing else first


def pinned_state(tips: Sequence[WatchedTip]) -> str | None:
    """What the next packages of a row are compared with; None before the first look.

    It is the first state, or the latest that differed, or one that had nothing to be compared with.
    """
    pinned = [tip.tip for tip in tips if tip.differs or tip.tip == tip.reference]
    return pinned[-1] if pinned else None


def quiet_states(tips: Iterable[WatchedTip]) -> frozenset[str]:
    """Of the latest states of a row, those that nothing is compared with any more.

    What is pinned, what was seen last and both sides of a difference are needed.
    """
    groups: dict[tuple[str, str, str], list[WatchedTip]] = {}
    for tip in tips:
        series = tip.series
        groups.setdefault((series.watch, series.workload, series.metric), []).append(tip)
    latest = {tip.tip for series_tips in groups.values() for tip in series_tips[-LATEST:]}
    kept_states = {
        state
        for series_tips in groups.values()
        for state in (pinned_state(series_tips), series_tips[-1].tip)
    }
    differing = (tip for series_tips in groups.values() for tip in series_tips if tip.differs)
    return frozenset(
        latest - kept_states - {s for tip in differing for s in (tip.tip, tip.reference)}
    )


def seen_already(tips: Sequence[WatchedTip], tip: str) -> bool:
    """Whether the answer about this tip stands; of an unknown one more is worth a try."""
    return bool(tips) and tips[-1].tip == tip and tips[-1].direction != "unknown"


class SeriesPoint(NamedTuple):
    """Where a tip stands, as a multiple of the series' first reference."""

    number: int  # of the series' tips
    tip: WatchedTip
    ratio: float
    low: float
    high: float


def points_of(tips: Sequence[WatchedTip]) -> tuple[SeriesPoint, ...]:
    """Each tip's level: the differences found so far, multiplied; what says nothing has none."""
    level, points = 0.0, []
    for number, tip in enumerate(tips):
        if tip.direction in {"unknown", "impossible"}:
            continue
        sign = 1 if tip.direction == "slower" else -1
        ends = sorted(sign * math.log(ratio) for ratio in tip.interval or () if ratio > 0)
        near = math.log1p((tip.smallest_pct or 0.0) / 100)
        low, high = (ends[0], ends[-1]) if tip.differs and ends else (-near, near)
        points.append(
            SeriesPoint(
                number=number,
                tip=tip,
                ratio=math.exp(level + tip.log_ratio),
                low=math.exp(level + low),
                high=math.exp(level + high),
            )
        )
        level += tip.log_ratio
    return tuple(points)
