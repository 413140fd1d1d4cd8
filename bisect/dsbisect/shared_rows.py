"""A search over rows as several machines read it: its matrix and lock travel with the request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import JsonValue

from dsbisect.rows_study import RowsRequest, row_lab, rows_search
from dsbisect.search_options import SearchOptions
from dsbisect.shared_request import MatrixTexts, document_in, refuse_unshared
from dsharness.containers.engine import Engine
from dsharness.matrix import find_series, find_settings
from dsharness.measure.profiler import check_profiler
from dsharness.model import Campaign, Finding, SharedRun, Value, Workload
from dsimages.image_set import lock_of
from dslab.campaign_loop import Answers
from dslab.laboratory import Laboratory
from dslab.step_profiles import profile_steps
from dslab.watcher import Watcher
from dslab.witnesses import LabWitnesses
from dsresults.profile_pair import ProfilePair
from dsresults.store import Store


class RowsDocument(Value):
    """What a worker must know."""

    kind: Literal["rows"] = "rows"
    matrix: MatrixTexts
    series: str
    good: str | None
    bad: str | None
    workloads: tuple[Workload, ...]
    settings: str
    metric: str
    keep: bool = False
    profile: bool = False
    options: SearchOptions


def document_of(request: RowsRequest, options: SearchOptions) -> dict[str, JsonValue]:
    """The request as JSON; UsageError for what machines cannot share yet."""
    refuse_unshared({"--relock": request.relock})
    document = RowsDocument(
        matrix=MatrixTexts.of(request.matrix),
        series=request.series.id,
        good=request.good,
        bad=request.bad,
        workloads=request.workloads,
        settings=request.settings.id,
        metric=request.metric,
        keep=request.keep,
        profile=request.profile,
        options=options,
    )
    return document.model_dump(mode="json")


@dataclass(frozen=True, kw_only=True)
class SharedRows:
    """A ``SharedStudy`` of rows."""

    request: RowsRequest
    options: SearchOptions

    @property
    def begins_with(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row for line in self.request.lines for row in line))

    @property
    def questions(self) -> int:
        return len(self.request.questions)

    @property
    def lock(self) -> str:
        return lock_of(self.request.matrix).text

    def answer(self, answers: Answers, store: Store, *, paired: bool) -> Finding | None:
        """Ask each; there is nothing to keep but the answers."""
        del store
        self._asked(answers, replace(self.options, paired=paired))
        return None

    def _asked(self, answers: Answers, options: SearchOptions) -> Sequence[Campaign]:
        answered: list[Campaign] = []
        for question, workload in self.request.questions:
            search = rows_search(options, workload, answered)
            answered.append(answers(question, workload, search, "rows"))
        return answered

    @property
    def profiled(self) -> bool:
        return self.request.profile

    def profile(
        self, answers: Answers, lab: Laboratory, store: Store, watcher: Watcher
    ) -> Sequence[ProfilePair]:
        check_profiler()
        found = self._asked(answers, self.options)
        witnesses = LabWitnesses(lab=lab)
        return profile_steps(found, self.request.workloads, witnesses, store, watcher)

    def introduce(self, candidates: Sequence[str], answers: Answers, store: Store) -> None:
        """All were prepared at the start."""

    def lab(
        self, engine: Engine, store: Store, watcher: Watcher
    ) -> AbstractContextManager[Laboratory]:
        return row_lab(
            self.request, self.begins_with, self.questions,
            engine=engine, store=store, watcher=watcher,
        )  # fmt: skip

    @classmethod
    def of(cls, run: SharedRun) -> SharedRows:
        """A run's request as it was asked."""
        document = document_in(RowsDocument, run)
        matrix = document.matrix.loaded(run)
        return cls(
            request=RowsRequest(
                matrix=matrix,
                series=find_series(matrix, document.series),
                workloads=document.workloads,
                settings=find_settings(matrix, document.settings),
                metric=document.metric,
                good=document.good,
                bad=document.bad,
                keep=document.keep,
                profile=document.profile,
            ),
            options=document.options,
        )
