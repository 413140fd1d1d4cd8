"""Source after source, each in the best toolchain first; known results are not computed again.

What a survey does next, and how long the rest will take, are pure functions of what it has done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache, partial
from typing import Protocol

from dsbisect.commits.commits_request import SHORT, tree_of
from dsbisect.survey.chosen_sources import Selection, chosen_of
from dsbisect.survey.probe import (
    PREFIX,
    Attempt,
    BuildResult,
    Probe,
    ProbeStep,
    SourceResult,
    keep,
    recall,
)
from dsbuilds.drivers.tree import SLOTS
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.needs import Files, eras_of
from dsbuilds.toolchains.toolchain_choice import choices_of, named
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import reap
from dsharness.errors import BuildError
from dsharness.model import Matrix, Toolchain
from dsharness.process.command import stop_all
from dsharness.process.deadline import check_request
from dsharness.products import product_of_source, version_of_source
from dsharness.products.product import numbers

RECENT = 12  # the first builds make toolchains and fill caches: they say little of the last ones


class SurveyStage(IntEnum):
    """How far a source came."""

    BUILD = 0  # in one of its toolchain's folders
    SERVE = 1
    WHOLE = 2  # once more with every file, in a folder of its own


@dataclass(frozen=True, kw_only=True)
class SurveyJob:
    """One stage of one source in one toolchain."""

    place: int  # in the order of versions: neighbours have most objects in common
    toolchain: str
    key: str  # equal for equal sources
    stage: SurveyStage = SurveyStage.BUILD


def next_job(
    waiting: Collection[SurveyJob], running: Collection[SurveyJob], last: Mapping[str, int]
) -> SurveyJob | None:
    """The job to begin now; None when all of them have to wait for one that runs.

    What was built is served before more is built, and no more builds of a toolchain are begun than
    it has folders. ``last`` is the place of the last build of each toolchain.
    """
    begun_keys = {job.key for job in running}
    later = [
        job for job in waiting if job.stage is not SurveyStage.BUILD and job.key not in begun_keys
    ]
    if later:
        return min(later, key=lambda job: (job.stage, job.place))
    begun_keys |= {job.key for job in waiting if job.stage is not SurveyStage.BUILD}
    building = Counter(job.toolchain for job in running if job.stage is SurveyStage.BUILD)
    free: dict[str, list[SurveyJob]] = {}
    for job in waiting:
        if building[job.toolchain] < SLOTS and job.key not in begun_keys:
            free.setdefault(job.toolchain, []).append(job)
    if not free:
        return None
    # The longest line first: it is what the end waits for.
    toolchain = min(free, key=lambda toolchain_id: (-len(free[toolchain_id]), toolchain_id))
    behind = last.get(toolchain, -1)
    return min(free[toolchain], key=lambda job: (job.place <= behind, job.place))


def left_s(ended_s: Sequence[float], left_jobs: int, now_s: float) -> float | None:
    """How long so many more take, from the times when the last ones ended; None: not known yet.

    ``ended_s`` begins with the time when the first one was begun.
    """
    recent = ended_s[-RECENT - 1 :]
    if len(recent) < 2:
        return None
    each_s = (recent[-1] - recent[0]) / (len(recent) - 1)
    return left_jobs * each_s - min(now_s - recent[-1], each_s) if left_jobs else 0.0


TICK_S = 1.0


class SurveyListener(Protocol):
    """Receives the progress; ``trying`` from any thread, the rest from one."""

    def reading(self, sources: int) -> None: ...

    def begin(
        self, lines: Sequence[str], products: Collection[str], known: int, note: str
    ) -> None: ...

    def trying(self, source: str, toolchain: str, stage: str) -> None: ...

    def paused(self, source: str) -> None:
        """Nothing of it is tried now; what comes next for it may have to wait."""
        ...

    def found(self, finding: SourceResult) -> None: ...

    def waiting(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The question about a repository."""

    matrix: Matrix
    repository: str
    selection: Selection = field(default_factory=Selection)
    toolchain: str | None = None  # only this one
    every_toolchain: bool = False  # a line for each that fits, not only for the first that works
    plain: bool = True  # what does not build is built again as it stands
    jobs: int = 1


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A line to fill, by the first of its probes that works; without one, no toolchain fits."""

    place: int
    source: str
    commit: str
    product: str
    version: str
    shows: tuple[str, ...]
    probes: tuple[Probe, ...]
    refused: BuildResult = field(default_factory=BuildResult)

    def result(self, tried: Sequence[BuildResult], *, known: bool) -> SourceResult:
        """What came furthest counts, the earlier toolchain of two alike."""
        attempts = [
            Attempt(toolchain=probe.toolchain.id, outcome=outcome)
            for probe, outcome in zip(self.probes, tried, strict=False)
        ]
        no_attempt = Attempt(toolchain="", outcome=self.refused)
        best = max(attempts, key=lambda attempt: attempt.outcome.reached, default=no_attempt)
        return SourceResult(
            place=self.place,
            source=self.source,
            commit=self.commit,
            product=self.product,
            version=self.version,
            shows=self.shows,
            known=known,
            toolchain=best.toolchain,
            outcome=best.outcome,
            before=tuple(attempt for attempt in attempts if attempt is not best),
        )


def run_survey(survey: Survey, engine: Engine, listener: SurveyListener) -> Iterator[SourceResult]:
    """Every source, as they end; each result is kept at once.

    A source's failure is a result; a failure of the machine or network ends the survey.
    """
    if survey.toolchain is not None:
        named(survey.toolchain, survey.matrix.toolchains)
    repository = Repository.open(survey.repository)
    selection = chosen_of(repository, survey.selection)
    listener.reading(len(selection.commits))
    board = _Board(survey, listener, _lines(survey, engine, repository, selection.commits.items()))
    names = [line.source for line in board.lines]
    products = dict.fromkeys(line.product for line in board.lines)
    listener.begin(names, products, len(board.complete), selection.note)
    reap(engine)
    yield from board.told(board.complete)
    yield from _worked(board, survey.jobs)


def _worked(board: _Board, jobs: int) -> Iterator[SourceResult]:
    """The results of what is new, as they come; an error ends what still runs."""
    pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="survey")
    running: dict[Future[ProbeStep], SurveyJob] = {}
    try:
        while board.waiting or running:
            check_request()
            while len(running) < jobs and (job := board.begun(running.values())):
                running[pool.submit(board.step, job)] = job
            ended, _ = wait(running, timeout=TICK_S, return_when=FIRST_COMPLETED)
            board.listener.waiting()
            for future in ended:
                job = running.pop(future)
                board.listener.paused(board.lines[job.place].source)
                yield from board.told(board.ended(job, future.result()))
    except BaseException:
        stop_all()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Board:
    """What is done, and what waits."""

    def __init__(self, survey: Survey, listener: SurveyListener, lines: Sequence[_Line]) -> None:
        self.lines = lines
        self.listener = listener
        self.waiting: set[SurveyJob] = set()
        self._plain = survey.plain
        self._last: dict[str, int] = {}
        self._built: dict[int, BuildResult] = {}  # and not served yet
        self._tried: dict[int, list[BuildResult]] = {line.place: [] for line in lines}
        self._passing: set[int] = set()  # where something may go another time
        self._new: set[int] = set()
        self.complete = [result for line in lines for result in self._advanced(line)]

    def begun(self, running: Collection[SurveyJob]) -> SurveyJob | None:
        """The job that begins now, if one can."""
        job = next_job(self.waiting, running, self._last)
        if job is not None:
            self.waiting.remove(job)
            if job.stage is SurveyStage.BUILD:
                self._last[job.toolchain] = job.place
        return job

    def step(self, job: SurveyJob) -> ProbeStep:
        """Carry it out, in any thread, and keep what came of it."""
        line, probe = self.lines[job.place], self._probe(job)
        recalled = recall(job.key)  # equal sources of two names are one
        if recalled is not None and (job.stage is not SurveyStage.WHOLE or recalled.every_file):
            return ProbeStep(outcome=recalled)
        progress = partial(self.listener.trying, line.source, job.toolchain)
        match job.stage:
            case SurveyStage.BUILD:
                step = probe.build(progress)
            case SurveyStage.SERVE:
                step = probe.serve(self._built[job.place], progress)
            case SurveyStage.WHOLE:
                index = line.probes.index(probe)
                step = probe.build_whole(self._tried[job.place][index], progress)
        if step.ended and step.lasting:
            keep(job.key, step.outcome)
        return step

    def ended(self, job: SurveyJob, step: ProbeStep) -> list[SourceResult]:
        """Its line, if that is complete now."""
        line, tried = self.lines[job.place], self._tried[job.place]
        if not step.lasting:
            self._passing.add(job.place)
        if not step.ended:
            self._built[job.place] = step.outcome
            self.waiting.add(replace(job, stage=SurveyStage.SERVE))
            return []
        if job.stage is SurveyStage.WHOLE:
            tried[line.probes.index(self._probe(job))] = step.outcome
        else:
            tried.append(step.outcome)
        return self._advanced(line)

    def told(self, results: Iterable[SourceResult]) -> Iterator[SourceResult]:
        for result in results:
            self.listener.found(result)
            yield result

    def _advanced(self, line: _Line) -> list[SourceResult]:
        """The line if it is complete; otherwise its next job waits."""
        tried = self._tried[line.place]
        for probe in line.probes[len(tried) :]:
            if tried and tried[-1].answers:
                break
            recalled = recall(probe.key)
            if recalled is None:
                self._wait_for(line, probe, SurveyStage.BUILD)
                return []
            tried.append(recalled)
        result = line.result(tried, known=line.place not in self._new)
        if self._wants_whole(line, result):
            (probe,) = (
                candidate for candidate in line.probes if candidate.toolchain.id == result.toolchain
            )
            self._wait_for(line, probe, SurveyStage.WHOLE)
            return []
        return [result]

    def _wants_whole(self, line: _Line, result: SourceResult) -> bool:
        failed = bool(line.probes) and not result.outcome.built
        new = not result.outcome.every_file and line.place not in self._passing
        return self._plain and failed and new

    def _wait_for(self, line: _Line, probe: Probe, stage: SurveyStage) -> None:
        self._new.add(line.place)
        toolchain = probe.toolchain.id
        self.waiting.add(
            SurveyJob(place=line.place, toolchain=toolchain, key=probe.key, stage=stage)
        )

    def _probe(self, job: SurveyJob) -> Probe:
        probes = self.lines[job.place].probes
        return next(probe for probe in probes if probe.toolchain.id == job.toolchain)


def _lines(
    survey: Survey, engine: Engine, repository: Repository, commits: Iterable[tuple[str, str]]
) -> tuple[_Line, ...]:
    """The lines of all sources, the newest version first."""
    drafts = [
        draft
        for name, commit in commits
        for draft in _lines_of(survey, engine, name, tree_of(repository, commit))
    ]
    drafts.sort(key=lambda line: numbers(line.version), reverse=True)
    return tuple(replace(line, place=place) for place, line in enumerate(drafts))


def _lines_of(survey: Survey, engine: Engine, name: str, tree: Tree) -> Iterator[_Line]:
    files = cache(tree.read)
    product = product_of_source(lambda path: files(path) is not None)
    line = _Line(
        place=0,
        source=name,
        commit=(tree.revision or "")[:SHORT],
        product=product or "",
        version=(version_of_source(product, files) or "") if product else "",
        shows=_shown(product, files),
        probes=(),
    )
    try:
        choices = choices_of(files, _toolchains(survey))
    except BuildError as error:
        refused = BuildResult(why_not=error.message.removeprefix(PREFIX))
        yield replace(line, refused=refused)
        return
    fitting = {choice.toolchain.id: choice.toolchain for choice in choices}.values()
    probes = tuple(
        Probe(engine=engine, matrix=survey.matrix, name=name, tree=tree, toolchain=toolchain)
        for toolchain in fitting
    )
    for group in [(probe,) for probe in probes] if survey.every_toolchain else [probes]:
        yield replace(line, probes=group)


def _shown(product: str | None, files: Files) -> tuple[str, ...]:
    eras = eras_of(product) if product else None
    return tuple(trait.id for trait in eras.of(files) if trait.shown) if eras else ()


def _toolchains(survey: Survey) -> tuple[Toolchain, ...]:
    toolchains = survey.matrix.toolchains
    return toolchains if survey.toolchain is None else (named(survey.toolchain, toolchains),)
