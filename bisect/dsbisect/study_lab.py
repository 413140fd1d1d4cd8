"""Who answers a study: this machine, or answers that are known, such as those of a fleet.

All give the runs that a study asks for. What is stored counts: a study that was interrupted
continues, and one that was answered is answered again without a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dsbisect import capacity
from dsbisect.open_campaigns import (
    Asked,
    OpenCampaigns,
    SearchFor,
    runs_question,
    valid_runs,
    whole_runs,
)
from dsbisect.rows_study import RowsAsked, row_lab
from dsbuilds.build_request import check_rows
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError
from dsharness.matrix import find_row, find_series, find_settings, find_workload
from dsharness.matrix.series_graph import chains
from dsharness.measure.gate import is_fed
from dsharness.measure.metrics import find_metric
from dsharness.measure.profiler import check_profiler
from dsharness.model import Campaign, Image, Matrix, Sample, Settings, SystemName, Value, Workload
from dslab.campaign_loop import Answers, LabAnswers, Together, asked_in_turn
from dslab.candidates import check_loads
from dslab.inspections import LabInspections
from dslab.known_answers import UnpreparedError
from dslab.lab_conditions import default_workloads, fitting_workloads
from dslab.laboratory import Laboratory
from dslab.observer import Observer
from dslab.step_profiles import profile_steps
from dsresults.page.page import Answer as PageAnswer
from dsresults.profile_pair import ProfilePair
from dsresults.store import Store
from dsresults.stored_value import stored
from dssearch.planner import Rounds

if TYPE_CHECKING:
    from pydantic import JsonValue

    from dsbisect.study import Study
    from dsmany.shared_search import LabOpener


class Answer(PageAnswer, Protocol):
    """What a study found: a ``Value`` that is stored, printed, and shown on a page."""

    def model_dump(self, *, mode: str) -> dict[str, JsonValue]: ...


class Runs(capacity.Runs, Protocol):
    """Rows that are prepared for loads, as far as they can be."""

    @property
    def paired(self) -> bool:
        """Whether two rows are measured at the same time."""
        ...

    @property
    def images(self) -> Mapping[str, Image]:
        """The images that were made, by their keys, as far as they are here."""
        ...

    def refuse_failed(self) -> None:
        """Raise the error of the first row that could not be prepared."""
        ...

    def in_turn(
        self, loads: Sequence[tuple[Workload, Sequence[str]]], number: int
    ) -> list[list[Sample]]:
        """What ``valid`` gives of several loads, which take turns, each on rows of its own."""
        ...

    def whole_turns(
        self, load: Workload, rows: Sequence[str], number: int, series: str
    ) -> list[Sample]:
        """All samples of a load, when so many turns have a run of each row that counts.

        InconclusiveError where a row fails again and again.
        """
        ...

    def fresh(self, load: Workload, rows: Sequence[str], rounds: Rounds) -> list[Sample]:
        """All samples of turns that are taken now: what was answered before does not count."""
        ...

    def stretch(self, load: Workload, row: str, number: int, later: int = 0) -> list[Sample]:
        """So many runs that follow each other on one server, whether they are valid or not."""
        ...

    def searched(
        self, questions: Sequence[Asked], search_for: SearchFor, *, once: bool = False
    ) -> list[Campaign]:
        """The answer to each question; a search may know those before it.

        ``once``: whatever is answered already is not asked again.
        """
        ...

    def profiled(
        self, campaigns: Sequence[Campaign], workloads: Sequence[Workload]
    ) -> Sequence[ProfilePair]:
        """Profile both sides of each answer, where there is a lab."""
        ...


class Lab(Protocol):
    """Answers what studies ask."""

    @property
    def scene(self) -> Scene: ...

    @property
    def store(self) -> Store: ...

    def rows(
        self, study: Study, *loads: Workload, part: LabPart | None = None
    ) -> AbstractContextManager[Runs]:
        """Prepare the rows of a study, or a part, for loads; leaving it ends their servers."""
        ...

    def announce(self, names: Sequence[str]) -> None:
        """Tell once what all labs of a study prepare, before the first."""
        ...

    def seen(self, name: str, kind: type[V], look: Callable[[ThisMachine], V]) -> V:
        """What one sees who looks at a live server; it is kept with the answer."""
        ...


@dataclass(frozen=True, kw_only=True)
class LabPart:
    """A lab of some rows alone, with settings or a metric of their own."""

    rows: tuple[str, ...]
    settings: Settings
    metric: str = ""  # that is looked at, where the study looks at several


V = TypeVar("V", bound=Value)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What the words of a study stand for: its matrix, and workloads, which files may hold."""

    matrix: Matrix
    workloads: dict[str, Workload] = field(default_factory=dict)  # as they were read, by name
    opened: dict[str, Any] = field(default_factory=dict)  # what a study has opened once

    def workload(self, name: str) -> Workload:
        """Return the workload of this name, as it was when it was read first."""
        if name not in self.workloads:
            self.workloads[name] = find_workload(self.matrix, name)
        return self.workloads[name]

    @property
    def default_rows(self) -> tuple[str, ...]:
        """The rows of the matrix's default series, each once."""
        series = find_series(self.matrix, self.matrix.defaults.series)
        return tuple(dict.fromkeys(row for line in chains(series) for row in line))

    def fitting_workloads(self, systems: Iterable[SystemName]) -> tuple[Workload, ...]:
        """Return all of the matrix that these systems can answer."""
        return fitting_workloads(self.matrix, systems)

    def chosen_workloads(
        self, names: Iterable[str], systems: Iterable[SystemName]
    ) -> tuple[Workload, ...]:
        """Return those that are named; without a name the matrix's that these systems answer."""
        return tuple(map(self.workload, names)) or self.usual_workloads(systems)

    def usual_workloads(self, systems: Iterable[SystemName]) -> tuple[Workload, ...]:
        """Return those of the matrix that these systems can answer."""
        loads = default_workloads(self.matrix, systems)
        self.workloads.update({load.named: load for load in loads})
        return loads

    def once(self, name: str, open_it: Callable[[], T]) -> T:
        """Return what a study opens, opened when it is asked for first."""
        if name not in self.opened:
            self.opened[name] = open_it()
        value: T = self.opened[name]
        return value

    def settings(self, study: Study) -> Settings:
        return find_settings(self.matrix, study.settings)

    def refuse_impossible(self, study: Study) -> tuple[Workload, ...]:
        """Return the loads; refuse what can never be built or measured, before anything starts."""
        rows = tuple(find_row(self.matrix, name) for name in study.matrix_rows(self))
        loads = study.loads(self)
        check_rows(self.matrix, rows)
        check_loads(self.matrix, rows, self.workloads.values(), self.settings(study))
        return loads


def lab_key(load: Workload, part: LabPart | None = None) -> str:
    """What a lab of a study is called: by its first load, and by what it is a part of."""
    return "/".join((*part.rows, part.settings.id, load.id)) if part else load.id


@dataclass(frozen=True, kw_only=True)
class LabAsked:
    """A lab that a study, or a part of it, asks for."""

    study: Study
    loads: tuple[Workload, ...]
    part: LabPart | None

    @property
    def name(self) -> str:
        return lab_key(self.loads[0], self.part)

    @property
    def settings(self) -> str:
        return self.part.settings.id if self.part else self.study.settings

    @property
    def metric(self) -> str:
        return (self.part and self.part.metric) or self.study.decider


@dataclass(frozen=True, kw_only=True)
class ThisMachine:
    """A ``Lab`` of this machine's own containers."""

    scene: Scene
    engine: Engine
    store: Store
    observer: Observer
    relock: bool = False
    keep: bool = False
    opened: dict[str, OpenCampaigns] = field(default_factory=dict)  # each lab, in order
    looks: dict[str, Value] = field(default_factory=dict)  # what was seen

    @contextmanager
    def rows(
        self, study: Study, *loads: Workload, part: LabPart | None = None
    ) -> Iterator[OpenCampaigns]:
        if study.profiled:
            check_profiler()
        asked = LabAsked(study=study, loads=loads, part=part)
        with self.lab(asked) as laboratory:
            yield self.runs_in(laboratory, asked)

    def runs_in(self, laboratory: Laboratory, asked: LabAsked) -> OpenCampaigns:
        """Return the campaigns of a lab that is open, by whose name it is known from now on."""
        self.opened[asked.name] = runs = OpenCampaigns(
            settings=asked.settings,
            metric=asked.metric,
            kind=asked.study.runs_kind,
            search_kind=asked.study.search_kind,
            lab=laboratory,
            store=self.store,
            observer=self.observer,
            laboratory=laboratory,
            errors=laboratory.failures,
        )
        return runs

    def announce(self, names: Sequence[str]) -> None:
        self.observer.begin(names, len(names))

    def seen(self, name: str, kind: type[V], look: Callable[[ThisMachine], V]) -> V:
        del kind
        self.looks[name] = (value := look(self))
        return value

    def laboratory(self, key: str) -> Laboratory:
        """Return the lab of that name, which is open."""
        laboratory = self.opened[key].laboratory
        assert laboratory is not None  # noqa: S101 - of this machine
        return laboratory

    @contextmanager
    def lab(self, asked: LabAsked) -> Iterator[Laboratory]:
        """The lab itself, with the rows of a study prepared in it."""
        study, part = asked.study, asked.part
        rows_asked = RowsAsked(
            matrix=self.scene.matrix,
            workloads=asked.loads,
            settings=part.settings if part else self.scene.settings(study),
            metric=asked.metric,
            relock=self.relock,
            keep=self.keep,
        )
        with row_lab(
            rows_asked,
            part.rows if part else study.names(self.scene),
            len(asked.loads) if part else study.questions(self.scene),
            duet=study.pairs(self.scene),
            engine=self.engine,
            store=self.store,
            observer=self.observer,
            supply=study.supply(self),
        ) as laboratory:
            yield laboratory


@dataclass(frozen=True, kw_only=True)
class AnsweredLab:
    """A ``Lab`` without servers: its answers come from a fleet, or from the store alone.

    UnansweredError ends a study where they have none. Runs that were taken after an answer was
    found do not count in it.
    """

    scene: Scene
    store: Store
    answers: LabAnswers
    together: Together = asked_in_turn
    failures: Mapping[str, Mapping[str, str]]  # of rows that could not be prepared, by lab
    looks: Mapping[str, object] = field(default_factory=dict)  # what was seen
    pairs: Mapping[str, bool] | None = None  # labs that are prepared: whether two run at once
    entered: dict[str, LabAsked] = field(default_factory=dict)  # by name, in order
    session: str = ""  # the start of a lab that an answer is of
    until: str | None = None
    laboratory: Laboratory | None = None  # where profiles are taken
    observer: Observer | None = None

    @contextmanager
    def rows(
        self, study: Study, *loads: Workload, part: LabPart | None = None
    ) -> Iterator[AnsweredRuns]:
        asked = LabAsked(study=study, loads=loads, part=part)
        self.entered[asked.name] = asked
        if self.pairs is not None and asked.name not in self.pairs:
            self.prepare(asked)
        yield AnsweredRuns(
            lab=self,
            study=study,
            settings=asked.settings,
            metric=asked.metric,
            answers=self.answers.within(asked.name),
            paired=bool(self.pairs and self.pairs[asked.name]),
            failures=self.failures.get(asked.name, {}),
        )

    def prepare(self, asked: LabAsked) -> None:
        """Some machine has to."""
        del asked
        raise UnpreparedError

    def announce(self, names: Sequence[str]) -> None:
        """Nobody watches."""

    def seen(self, name: str, kind: type[V], look: Callable[[ThisMachine], V]) -> V:
        if name not in self.looks:
            return self.look(name, look)
        return stored(kind, self.looks[name], f"look at {name}")

    def look(self, name: str, look: Callable[[ThisMachine], V]) -> V:
        """Some machine has to."""
        del name, look
        raise UnpreparedError


@dataclass(frozen=True, kw_only=True)
class PreparingLab(AnsweredLab):
    """The same on a machine that prepares what is asked next, and looks at it, for all others."""

    machine: ThisMachine
    opener: LabOpener
    failures: dict[str, Mapping[str, str]] = field(default_factory=dict)
    looks: dict[str, object] = field(default_factory=dict)
    pairs: dict[str, bool] = field(default_factory=dict)
    seen_now: dict[str, Value] = field(default_factory=dict)

    def prepare(self, asked: LabAsked) -> None:
        """Open it; what was open before is closed."""
        lab = self._opened(asked)
        self.failures[asked.name], self.pairs[asked.name] = lab.unmeasurable, lab.paired

    def look(self, name: str, look: Callable[[ThisMachine], V]) -> V:
        """Look at the lab that was entered last."""
        if self.entered:
            self._opened(next(reversed(self.entered.values())))
        self.seen_now[name] = value = look(self.machine)
        return value

    def _opened(self, asked: LabAsked) -> Laboratory:
        laboratory = self.opener.open(asked.name, partial(self.machine.lab, asked))
        self.machine.runs_in(laboratory, asked)
        return laboratory


@dataclass(frozen=True, kw_only=True)
class AnsweredRuns:
    """``Runs`` as they were stored."""

    lab: AnsweredLab
    study: Study
    settings: str
    metric: str
    answers: Answers
    paired: bool
    failures: Mapping[str, str]

    @property
    def images(self) -> Mapping[str, Image]:
        return {}

    def note(self, row: str, what: str) -> None:
        """Nobody watches."""

    def refuse_failed(self) -> None:
        for row, why in self.failures.items():
            raise CandidateError(why or f"{row} could not be prepared")

    def valid(
        self,
        load: Workload,
        rows: Sequence[str],
        number: int,
        later: int = 0,
        *,
        counts: capacity.Counts = capacity.is_valid,
    ) -> list[Sample]:
        del later
        missing = valid_runs(rows, number, counts=counts)
        return self._samples(load, tuple(rows), Rounds(missing=missing))

    def in_turn(
        self, loads: Sequence[tuple[Workload, Sequence[str]]], number: int
    ) -> list[list[Sample]]:
        asks = [partial(self.valid, load, rows, number, counts=is_fed) for load, rows in loads]
        return list(self.lab.together(asks))

    def stretch(self, load: Workload, row: str, number: int, later: int = 0) -> list[Sample]:
        del later
        series = f"{self.study.runs_kind}-{self.lab.session}"
        return self._samples(load, (row,), Rounds(missing=valid_runs((row,), number)), series)

    def whole_turns(
        self, load: Workload, rows: Sequence[str], number: int, series: str
    ) -> list[Sample]:
        rounds = Rounds(missing=whole_runs(rows, number, find_metric(self.metric)))
        return self._samples(load, tuple(rows), rounds, series)

    def fresh(self, load: Workload, rows: Sequence[str], rounds: Rounds) -> list[Sample]:
        return self._samples(load, tuple(rows), rounds, rows[0])

    def _samples(
        self,
        load: Workload,
        rows: tuple[str, ...],
        rounds: Rounds,
        series: str = "",
    ) -> list[Sample]:
        question = runs_question(self, load, rows, self.study.runs_kind, series)
        campaign = self.answers(question, load, rounds, self.study.runs_kind)
        samples = self.lab.store.samples(campaign_id=campaign.id)
        until = self.lab.until
        return [sample for sample in samples if until is None or sample.started_at <= until]

    def searched(
        self, questions: Sequence[Asked], search_for: SearchFor, *, once: bool = False
    ) -> list[Campaign]:
        del once  # it knows nothing else
        campaigns: list[Campaign] = []
        for question, workload in questions:
            search = search_for(workload, campaigns)
            campaigns.append(self.answers(question, workload, search, self.study.search_kind))
        return campaigns

    def profiled(
        self, campaigns: Sequence[Campaign], workloads: Sequence[Workload]
    ) -> Sequence[ProfilePair]:
        if self.lab.laboratory is None or self.lab.observer is None:
            return ()
        inspections = LabInspections(lab=self.lab.laboratory)
        return profile_steps(campaigns, workloads, inspections, self.lab.store, self.lab.observer)
