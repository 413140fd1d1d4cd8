"""A study: one series, one or more workloads, one boundary for each line and workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dsbisect.campaign import Listener, run_campaign
from dsbisect.halving import Halving
from dsbisect.laboratory import Laboratory, Plan
from dsbisect.searching import Question, Search
from dsharness.engine import Engine
from dsharness.errors import MatrixError
from dsharness.host import available_cpus, plan_cpus
from dsharness.matrix.findings import suggestion
from dsharness.matrix.series import chains
from dsharness.model import Arm, Campaign, Image, Matrix, Sample, Series, Workload
from dsresults.store import Store


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asked to be studied."""

    matrix: Matrix
    series: Series
    workloads: tuple[Workload, ...]
    arm: Arm
    good: str | None = None
    bad: str | None = None
    relock: bool = False
    keep: bool = False

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The lines to search, cut to good..bad; each at least two candidates long."""
        whole = chains(self.series)
        cut = (_cut(line, self.good, self.bad) for line in whole)
        lines = tuple(dict.fromkeys(line for line in cut if len(line) > 1))
        if not lines:
            raise MatrixError(self._why_none(whole), hint=self._order(whole))
        return lines

    def _why_none(self, whole: tuple[tuple[str, ...], ...]) -> str:
        """Nothing lies between good and bad: an unknown name, the wrong order, two branches."""
        known = {row for line in whole for row in line}
        for name in (self.good, self.bad):
            if name is not None and name not in known:
                return f"series {self.series.id} has no row {name!r}.{suggestion(name, known)}"
        if self.good is not None and self.good == self.bad:
            return f"--good and --bad are both {self.good}: a boundary lies between two rows"
        if self.good and self.bad and any(_cut(line, self.bad, self.good) for line in whole):
            return f"{self.bad} comes before {self.good} in series {self.series.id}: swapped?"
        return (
            f"series {self.series.id}: nothing to search between "
            f"{self.good or 'its start'} and {self.bad or 'its end'}"
        )

    def _order(self, whole: tuple[tuple[str, ...], ...]) -> str:
        graph = f"`dsbisect matrix graph {self.series.id}` shows the order"
        if len(whole) == 1:
            return f"{graph}: {', '.join(whole[0])}"
        return f"name two rows that follow each other: {graph}"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Everything a report needs."""

    campaigns: tuple[Campaign, ...]
    samples: tuple[Sample, ...]
    images: dict[str, Image]


class Watcher(Listener, Protocol):
    """A listener that also hears of preparations."""

    def preparing(self, row: str, what: str) -> None: ...

    def prepared(self, row: str) -> None: ...

    def begin(self, rows: Sequence[str], questions: int) -> None: ...


def run_study(
    request: Request,
    *,
    engine: Engine,
    store: Store,
    watcher: Watcher,
    search: Search | None = None,
) -> Findings:
    """Prepare every row once, then search each line with each workload."""
    lines = request.lines
    rows = tuple(dict.fromkeys(row for line in lines for row in line))
    plan = Plan(
        matrix=request.matrix,
        arm=request.arm,
        users=max(workload.users for workload in request.workloads),
        cpus=plan_cpus(available_cpus(), can_pin=engine.pins_cpus),
        relock=request.relock,
        keep=request.keep,
    )
    watcher.begin(rows, len(lines) * len(request.workloads))
    campaigns: list[Campaign] = []
    with Laboratory(engine, plan, watcher.preparing) as laboratory:
        laboratory.prepare(rows, watcher.prepared)
        for row, why in laboratory.unmeasurable.items():
            watcher.unmeasurable(row, why)
        for image in laboratory.images.values():
            store.add_image(image)
        for workload in request.workloads:
            for line in lines:
                question = Question(
                    series_id=request.series.id,
                    line=line,
                    workload_id=workload.id,
                    arm_id=request.arm.id,
                )
                campaigns.append(
                    run_campaign(
                        question,
                        workload,
                        search=search or Halving(),
                        benches=laboratory,
                        store=store,
                        listener=watcher,
                    )
                )
        images = laboratory.images
    samples = [
        sample for campaign in campaigns for sample in store.samples(campaign_id=campaign.id)
    ]
    return Findings(campaigns=tuple(campaigns), samples=tuple(samples), images=images)


def _cut(line: tuple[str, ...], good: str | None, bad: str | None) -> tuple[str, ...]:
    """The part of a line from good to bad; empty where it holds neither in that order."""
    if (good and good not in line) or (bad and bad not in line):
        return ()
    begin = line.index(good) if good else 0
    end = line.index(bad) if bad else len(line) - 1
    return line[begin : end + 1]
