"""A row under load for a long time: phases at shares of what it answers, on one server.

Each phase is cut into runs that follow each other at once, so that what changes with time is seen.
An interrupted one begins again: its server has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsbisect.capacity import CAPACITY_RUNS, Capacity, closed_loop, rounded_rate
from dsbisect.levels_study import at_rate
from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.containers.engine import Engine
from dsharness.errors import UsageError
from dsharness.machine.host import session_id
from dsharness.measure.metrics import LATENCY_P99
from dsharness.model import LdaploadWorkload, Sample
from dslab.laboratory import refuse_failed
from dslab.watcher import Watcher
from dsresults.compare.endured_phases import Endurance, endurance_of, endured_phase
from dsresults.store import Store

TOP_PCT = 60.0  # of the capacity: a machine that is full all day says nothing of its server
MINUTES = 5.0
# The published test: eight hours at 1800, 1200, 600, 1800 and 1200 users.
PHASES = ((100.0, 60.0), (67.0, 30.0), (33.0, 300.0), (100.0, 60.0), (67.0, 30.0))
SLICES = 60  # of the whole time, as long as a run has between 5 and 30 s
SHORTEST_S, LONGEST_S = 5.0, 30.0


@dataclass(frozen=True, kw_only=True)
class PhaseAsked:
    """A share of the top rate, for a part of the time."""

    share_pct: float
    part: float


@dataclass(frozen=True, kw_only=True)
class EnduranceRequest(RowsAsked):
    """Which row, under how much load, for how long."""

    row: str
    phases: tuple[PhaseAsked, ...] = tuple(PhaseAsked(share_pct=s, part=p) for s, p in PHASES)
    minutes: float = MINUTES
    top_pct: float = TOP_PCT
    rate: float | None = None  # of the top, instead of a share of the capacity
    metric: str = LATENCY_P99.name

    @property
    def load(self) -> LdaploadWorkload:
        """UsageError where the same server cannot serve all of it."""
        load = closed_loop(self.workloads[0])
        if load.writes:
            named = self.workloads[0].named
            raise UsageError(
                f"workload {named!r} writes: each of its runs begins with a new server",
                hint="take one that only reads, such as search-as-user or session",
            )
        return load

    def seconds(self, phase: PhaseAsked) -> float:
        return self.minutes * 60 * phase.part / sum(each.part for each in self.phases)

    def runs(self, phase: PhaseAsked) -> int:
        """So many follow each other in a phase."""
        length_s = min(LONGEST_S, max(SHORTEST_S, self.minutes * 60 / SLICES))
        return max(1, round(self.seconds(phase) / length_s))


def measure_endurance(
    request: EnduranceRequest, engine: Engine, store: Store, watcher: Watcher
) -> Endurance:
    """Find what the row answers, then go through the phases."""
    asked = replace(request, workloads=(request.load,))
    with row_lab(
        asked, (request.row,), 1, engine=engine, store=store, watcher=watcher, duet=False
    ) as lab:
        refuse_failed(lab)
        taken = OpenCampaigns(
            asked=request, kind="endurance", lab=lab, store=store, watcher=watcher
        )
        return _Phases(request=request, taken=taken).all()


@dataclass(frozen=True, kw_only=True)
class _Phases:
    """The phases of one request, in one lab."""

    request: EnduranceRequest
    taken: OpenCampaigns

    def all(self) -> Endurance:
        request, load = self.request, self.request.load
        measured = self._taken(load, request.row, CAPACITY_RUNS)
        capacity = Capacity.of(request.row, measured)
        top = request.rate or capacity.per_s * request.top_pct / 100
        rates = [rounded_rate(top * phase.share_pct / 100) for phase in request.phases]
        connections = max(load.threads, capacity.connections(max(rates)))
        numbers = [request.runs(phase) for phase in request.phases]
        start, phases = f"endurance-{session_id()}", []
        for number, (phase, rate) in enumerate(zip(request.phases, rates, strict=True)):
            run_s = request.seconds(phase) / numbers[number]
            slices = at_rate(load, rate, connections).model_copy(
                update={"id": f"{load.id[:48]}-phase-{number + 1}", "duration_s": run_s}
            )
            taken = self._taken(slices, start, numbers[number], sum(numbers[number + 1 :]))
            phases.append(endured_phase(phase.share_pct, rate, taken))
        return endurance_of(
            row=request.row,
            workload_id=request.workloads[0].id,
            title=load.title,
            capacity_per_s=capacity.per_s,
            connections=connections,
            phases=phases,
        )

    def _taken(
        self, load: LdaploadWorkload, series: str, runs: int, later: int = 0
    ) -> Sequence[Sample]:
        """All runs of this load, whether they can be used or not."""
        row = self.request.row
        return self.taken.samples(
            load, (row,), lambda history: runs - len(history.of(row)), later, series
        )
