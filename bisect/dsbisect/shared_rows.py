"""A search over rows as several machines read it: its matrix and lock travel with the request."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from dsbisect.rows_study import RowsRequest, row_lab, rows_search
from dsbisect.search_options import SearchOptions
from dsharness.containers.engine import Engine
from dsharness.errors import MatrixError, UsageError
from dsharness.matrix import find_series, find_settings, load_matrix
from dsharness.model import Campaign, SharedRun, Value, Workload
from dsharness.paths import cache_home
from dsharness.process.command import writing
from dsimages.matrix_lock import MatrixLock
from dslab.campaign_loop import CampaignKind
from dslab.laboratory import Laboratory
from dslab.watcher import Watcher
from dsresults.store import Store
from dssearch.question import Question, Search


class RowsDocument(Value):
    """What a worker must know; ``matrix`` and ``lock`` are the files' texts."""

    matrix: str
    lock: str
    series: str
    good: str | None
    bad: str | None
    workloads: tuple[Workload, ...]
    settings: str
    metric: str
    options: SearchOptions


def document_of(request: RowsRequest, options: SearchOptions) -> dict[str, JsonValue]:
    """The request as JSON; UsageError for what machines cannot share yet."""
    for option, given in (
        ("--profile", request.profile), ("--keep", request.keep), ("--relock", request.relock),
    ):  # fmt: skip
        if given:
            raise UsageError(
                f"{option} is not possible with --on", hint=f"leave out {option}, or --on"
            )
    file = request.matrix.file
    if file is None:
        raise MatrixError("the matrix was not read from a file", hint="name one with --matrix")
    lock = MatrixLock.of_matrix(file).path
    document = RowsDocument(
        matrix=file.read_text(encoding="utf-8"),
        lock=lock.read_text(encoding="utf-8") if lock.exists() else "",
        series=request.series.id,
        good=request.good,
        bad=request.bad,
        workloads=request.workloads,
        settings=request.settings.id,
        metric=request.metric,
        options=options,
    )
    return document.model_dump(mode="json")


@dataclass(frozen=True, kw_only=True)
class SharedRows:
    """A ``SharedStudy`` of rows."""

    request: RowsRequest
    options: SearchOptions

    @property
    def kind(self) -> CampaignKind:
        return "rows"

    @property
    def questions(self) -> Sequence[tuple[Question, Workload]]:
        return self.request.questions

    def search(self, number: int, answered: Sequence[Campaign], *, paired: bool) -> Search:
        _, workload = self.questions[number]
        return rows_search(replace(self.options, paired=paired), workload, answered)

    def lab(
        self, engine: Engine, store: Store, watcher: Watcher
    ) -> AbstractContextManager[Laboratory]:
        rows = tuple(dict.fromkeys(row for line in self.request.lines for row in line))
        return row_lab(
            self.request, rows, len(self.questions), engine=engine, store=store, watcher=watcher
        )


@dataclass(frozen=True, kw_only=True)
class SharedRowsStudies:
    """Reads requests, each once."""

    known: dict[str, SharedRows] = field(default_factory=dict)

    def __call__(self, run: SharedRun) -> SharedRows:
        if run.id not in self.known:
            self.known[run.id] = _read(run)
        return self.known[run.id]


def _read(run: SharedRun) -> SharedRows:
    document = RowsDocument.model_validate(run.request)
    folder = cache_home() / "shared" / str(uuid.UUID(run.id))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("matrix.yaml", document.matrix), ("matrix.lock", document.lock)):
            if text and not (folder / name).exists():
                (folder / name).write_text(text, encoding="utf-8")
    matrix = load_matrix(folder / "matrix.yaml")
    return SharedRows(
        request=RowsRequest(
            matrix=matrix,
            series=find_series(matrix, document.series),
            workloads=document.workloads,
            settings=find_settings(matrix, document.settings),
            metric=document.metric,
            good=document.good,
            bad=document.bad,
        ),
        options=document.options,
    )
