"""Candidates become ready servers: built, filled once, and started when they are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Self, TypeVar

from dsbuilds.built_row import load_image, second_tool_image
from dsbuilds.toolchains.toolchain_image import check_tools
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import reap
from dsharness.content_key import content_key
from dsharness.errors import CandidateError, InstanceError, WorkloadError
from dsharness.loads import LOADS
from dsharness.machine.host import machine_id, machine_now
from dsharness.machine.machine_lock import measuring_alone
from dsharness.measure.exact_counters import Valgrind
from dsharness.measure.golden_state import Golden, golden_state
from dsharness.measure.import_run import Stoppable
from dsharness.measure.instance import Wrapper, serve
from dsharness.measure.sample import PROCEDURE, Bench, bench
from dsharness.measure.ways import Importing
from dsharness.model import Image, Machine, Procedure, Sample, Setup, Starts, Turn
from dsharness.process.command import stop_all
from dsharness.process.deadline import check_request
from dsimages.buildah import remove_leftovers
from dslab.candidates import Supply
from dslab.lab_conditions import LabConditions
from dslab.observer import Observer, Preparation
from dslab.spent_time import SpentTime
from dsresults.store import Store

WORKERS = 2
AGES_APART = 1  # turns
MOST_BUILDS = 4  # of a proof: what one does on one core, others use
T = TypeVar("T")

CandidateProgress = Callable[[str, str], None]  # (candidate, what is happening)


class Laboratory:
    """Owns the servers of a campaign; leaving it removes every container."""

    def __init__(
        self, engine: Engine, conditions: LabConditions, supply: Supply, progress: CandidateProgress
    ) -> None:
        self._engine = engine
        self._conditions = conditions
        self._supply = supply
        self._progress = progress
        self._resources = ExitStack()
        self._benches: dict[str, tuple[Bench, ExitStack]] = {}
        self._served: Counter[str] = Counter()  # turns of each one's server since it started
        self._starts: Counter[str] = Counter()  # of each one's servers so far
        self._owed_s: dict[str, float] = {}  # what its start took longer than its runs since
        self._loader: Image | None = None
        self._wrapper: Wrapper | None = None
        self._runtimes: Mapping[str, str] = {}  # as they were when the ends were ready
        self._refused: dict[str, CandidateError] = {}  # by what was prepared for a turn
        self.goldens: dict[str, Golden] = {}
        self.failures: dict[str, CandidateError] = {}
        self.spent = SpentTime()

    def __enter__(self) -> Self:
        for orphan in (*reap(self._engine), *remove_leftovers(self._engine)):
            self._progress(orphan, "removed: its owner was killed")
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @property
    def identities(self) -> Mapping[str, str]:
        """What must stay the same for old samples to count."""
        keys = {row: golden.key for row, golden in self.goldens.items()}
        return self._supply.identities or keys

    @property
    def unmeasurable(self) -> dict[str, str]:
        """Candidates that could not be prepared, and why."""
        return {row: str(error) for row, error in self.failures.items()}

    @property
    def setup(self) -> Setup:
        """What samples must share to be compared, and to resume a search from them."""
        return Setup(machine=self.machine, procedure=self._procedure)

    @property
    def _procedure(self) -> Procedure:
        settings = self._conditions.settings.model_dump(mode="json", exclude={"id", "title"})
        return Procedure(
            version=PROCEDURE,
            way=self._conditions.way.name,
            settings=content_key(settings),
            loader=self._loader.key if self._loader else None,
            runtimes=dict(self._runtimes),
        )

    @property
    def machine(self) -> Machine:
        return machine_now(self._engine, self._conditions.way.cpus)

    @property
    def images(self) -> dict[str, Image]:
        """The first candidate's name stays with an image that several share."""
        return {golden.image.key: golden.image for golden in reversed(self.goldens.values())}

    def images_of(self, candidates: Iterable[str]) -> list[Image]:
        """Each under its own name, as far as they were made."""
        return [self.goldens[name].image for name in candidates if name in self.goldens]

    @property
    def paired(self) -> bool:
        """Whether two candidates are measured at the same time."""
        return self._conditions.way.paired

    def store_images(self, store: Store) -> None:
        for image in self.images.values():
            store.put(image)

    def prepare(self, candidates: Iterable[str], observer: Preparation) -> None:
        """Build images and golden states, two at a time; a candidate that fails is noted.

        A fault that affects more than one candidate ends everything.
        """
        candidates = tuple(candidates)
        for candidate in candidates:
            with suppress(CandidateError):  # what is no source comes again when it is built
                self._conditions.refuse_unfit(candidate, self._supply.system(candidate))
        with _at_a_time(WORKERS) as pool:
            # The load generator's image comes first: no row can be measured without it.
            loader: Future[Image | None] = pool.submit(self._load_generator)
            work = {pool.submit(self._golden, candidate): candidate for candidate in candidates}
            for future in as_completed(work):
                candidate = work[future]
                try:
                    self.goldens[candidate] = future.result()
                except CandidateError as error:
                    self.failures[candidate] = error
                    observer.failed(candidate, str(error))
                else:
                    observer.prepared(candidate)
            self._loader = loader.result()
            self._wrapper = self._wrapper_of_way()
            self._runtimes = dict(self._supply.runtimes)

    def prepare_more(self, candidates: Sequence[str], starts: Starts = "kept") -> None:
        """The same for what is needed next; the error of one that fails comes from ``ready``."""
        if starts == "fresh" and not self._conditions.of_age:
            for candidate in candidates:
                self.retire(candidate)
        self._even_ages(candidates)
        settled = self.goldens.keys() | self._refused.keys()
        missing = [candidate for candidate in candidates if candidate not in settled]
        if len(missing) >= WORKERS:
            self.goldens |= self._at_once(missing, self._golden)
        if not self._conditions.of_start:  # else one would slow the other's start down
            self._start_together(candidates)

    def _start_together(self, candidates: Sequence[str]) -> None:
        """Servers that are to start; what each took is its share of the time for all."""
        filled = self.goldens.keys() - self._refused.keys() - self._benches.keys()
        waiting, before_s = (
            [candidate for candidate in candidates if candidate in filled],
            self.spent.each_s,
        )
        if len(waiting) < WORKERS:
            return
        started = self._at_once(waiting, self._bench)
        took_s = (self.spent.each_s["fills"] - before_s["fills"]) / len(waiting)
        for candidate in started:
            self._owe(candidate, took_s)

    def _owe(self, candidate: str, took_s: float) -> None:
        """Note a start's cost; the first one reads its image from the disk, and says nothing."""
        self._owed_s[candidate] = took_s if self._starts[candidate] > 1 else 0.0

    def _at_once(self, candidates: Sequence[str], make: Callable[[str], T]) -> dict[str, T]:
        """What is made of each; the error of one that fails is kept for ``ready``."""
        results: dict[str, T] = {}
        with _at_a_time(MOST_BUILDS) as pool:
            for candidate, future in [
                (candidate, pool.submit(make, candidate)) for candidate in candidates
            ]:
                try:
                    results[candidate] = future.result()
                except CandidateError as error:
                    self._refused[candidate] = error
        return results

    def _even_ages(self, candidates: Sequence[str]) -> None:
        """Start servers again that have served more than those that they are compared with.

        What a server does leaves traces in it: one that leaks grows, and costs more with its age.
        """
        most = min((self._served[candidate] for candidate in candidates), default=0) + AGES_APART
        for candidate in candidates:
            if self._served[candidate] > most:
                self.retire(candidate)

    def ready(self, candidate: str) -> None:
        """A candidate's server runs; CandidateError when it cannot."""
        self._bench(candidate)

    def take(self, turn: Turn) -> Iterator[Sample]:
        """One run of each. A server that died, or has told all that it can, gets a new one."""
        check_request()
        way = self._conditions.way
        if turn.way != way.name or turn.machine not in {"", machine_id()}:
            raise AssertionError(
                f"turn {turn.number} of {turn.campaign_id} was planned {turn.way} on machine "
                f"{turn.machine or 'any'}, and is taken {way.name} on {machine_id()}"
            )
        benches = [self._bench(candidate) for candidate in turn.candidates]
        self._served.update(turn.candidates)
        # what else the machine does changes no count
        measuring = partial(self.spent.on, "runs") if way.counts else self._measuring
        before_s = self.spent.each_s["runs"]
        samples = way.take(turn, benches, measuring)
        once = turn.workload.writes or self._conditions.of_start  # then it is not measured again
        for candidate, served, sample in zip(turn.candidates, benches, samples, strict=True):
            if once or (not sample.valid and not served.usable):
                self.retire(candidate)
            yield sample
        self._part(turn, (self.spent.each_s["runs"] - before_s) / len(turn.candidates))

    def _part(self, turn: Turn, ran_s: float) -> None:
        """End the servers of a search's turn whose start cost no more than their runs.

        A server may be some per cent slower from its start to its end: where its memory lies and
        how its tables are hashed is drawn once. In new servers this is noise, and no difference.
        """
        serving = self._benches.keys() & set(turn.candidates)
        for candidate in serving:
            self._owed_s[candidate] -= ran_s
        if turn.starts == "kept" or self._conditions.of_age:
            return
        with _at_a_time(WORKERS) as pool:
            list(
                pool.map(
                    self.retire,
                    [candidate for candidate in serving if self._owed_s[candidate] <= 0],
                )
            )

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        """No other lab of this machine measures meanwhile."""
        with measuring_alone(partial(self._progress, "measuring")), self.spent.on("runs"):
            yield

    @contextmanager
    def apart(
        self, candidate: str, wrapper: Wrapper | None = None, loader: Image | None = None
    ) -> Iterator[Bench]:
        """A server of its own, for a run that is no sample."""
        loader = loader or self._loader
        if loader is None:
            raise WorkloadError("an import is a run of the server's own program: none is profiled")
        cpus, procedure = self._conditions.way.cpus, self._procedure
        golden = self.goldens[candidate]
        with (
            serve(self._engine, golden, cpus, inside=wrapper) as instance,
            bench(self._engine, instance, loader, cpus, self.machine, procedure) as served,
            self.spent.on("runs") if wrapper else self._measuring(),
        ):
            yield served

    def retire(self, candidate: str) -> None:
        """Stop a candidate's servers; the next sample starts them again."""
        del self._served[candidate]
        if candidate in self._benches:
            _, resources = self._benches.pop(candidate)
            resources.close()

    def _load_generator(self) -> Image | None:
        """None where the servers' own program is the load."""
        matrix, tool = self._conditions.matrix, self._conditions.tool
        if tool not in LOADS:
            return None
        with self.spent.on("builds"):
            return load_image(
                self._engine,
                matrix,
                tool,
                progress=lambda news: self._progress(matrix.tools.loads[tool], news),
            )

    def _wrapper_of_way(self) -> Wrapper | None:
        """What servers run in, where they do not run by themselves."""
        if isinstance(self._conditions.way, Importing):
            return Stoppable()
        return self.valgrind() if self._conditions.way.in_valgrind else None

    def valgrind(self) -> Valgrind:
        """In which a server can run."""
        progress, matrix = partial(self._progress, "valgrind"), self._conditions.matrix
        return Valgrind(image=check_tools(self._engine, matrix, progress=progress).reference)

    def second_tool(self) -> Image | None:
        """Where another tool is that makes the operations of ldclt; None if none is named."""
        progress = partial(self._progress, "the second tool")
        return second_tool_image(self._engine, self._conditions.matrix, progress=progress)

    def _golden(self, candidate: str) -> Golden:
        def show(news: str) -> None:
            self._progress(candidate, news)

        with self.spent.on("builds"):
            image = self._supply.image(candidate, show)
        system, keep = self._supply.system(candidate), self._conditions.keep
        with self.spent.on("fills"):
            seed = self._supply.seed(candidate, self._conditions.seed, show)
            golden = retry_if_killed(
                lambda: golden_state(self._engine, image, system, seed, progress=show, keep=keep)
            )
        self._supply.check(candidate, golden)
        return golden

    def _bench(self, candidate: str) -> Bench:
        if candidate not in self._benches:
            if candidate in self._refused:
                raise self._refused.pop(candidate)
            if candidate not in self.goldens:
                self.goldens[candidate] = self._golden(candidate)
            loader, before_s = self._loader, self.spent.each_s["fills"]
            with self.spent.on("fills"):
                started = retry_if_killed(lambda: self._started(candidate, loader))
            self._owe(candidate, self.spent.each_s["fills"] - before_s)
            self._benches[candidate] = started
        return self._benches[candidate][0]

    def _started(self, candidate: str, loader: Image | None) -> tuple[Bench, ExitStack]:
        cpus, keep = self._conditions.way.cpus, self._conditions.keep
        self._starts[candidate] += 1
        with ExitStack() as stack:
            instance = stack.enter_context(
                serve(self._engine, self.goldens[candidate], cpus, inside=self._wrapper, keep=keep)
            )
            with instance.needed():
                place = stack.enter_context(
                    bench(
                        self._engine,
                        instance,
                        loader,
                        cpus,
                        self.machine,
                        self._procedure,
                        start=self._starts[candidate],
                        keep=keep,
                    )
                )
            return place, self._resources.enter_context(stack.pop_all())


@contextmanager
def _at_a_time(workers: int) -> Iterator[ThreadPoolExecutor]:
    """What an error or a Ctrl-C leaves running is ended."""
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="prepare")
    try:
        yield pool
    except BaseException:
        stop_all()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def refuse_failed(lab: Laboratory) -> None:
    """The error of the first candidate that could not be prepared, where all are needed."""
    for failure in lab.failures.values():
        raise failure


@contextmanager
def open_lab(
    conditions: LabConditions,
    supply: Supply,
    candidates: Sequence[str],
    *,
    engine: Engine,
    store: Store,
    observer: Observer,
    questions: int = 1,
    notes: Sequence[str] = (),
) -> Iterator[Laboratory]:
    """A lab whose candidates are prepared, as far as they can be; it stores their images."""
    observer.begin(candidates, questions)
    for note in notes:
        observer.preparing(candidates[0], note)
    with Laboratory(engine, conditions, supply, observer.preparing) as laboratory:
        laboratory.prepare(candidates, observer)
        if more := supply.left():
            laboratory.prepare(more, observer)
        laboratory.store_images(store)
        yield laboratory
        laboratory.store_images(store)


def retry_if_killed(make: Callable[[], T]) -> T:
    """Make it; once more if its server was ended from outside. The second time counts."""
    try:
        return make()
    except InstanceError as error:
        if not error.killed:
            raise
    return make()
