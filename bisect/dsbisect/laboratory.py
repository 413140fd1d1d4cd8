"""Rows become ready benches: images built, golden states made, servers started when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from dsharness.commands import stop_all
from dsharness.engine import Engine
from dsharness.errors import CandidateError, WorkloadError
from dsharness.golden import Golden, golden_state
from dsharness.host import CpuPlan, fingerprint
from dsharness.instance import serve
from dsharness.model import Arm, Image, Matrix, Sample, Workload
from dsharness.ownership import reap
from dsharness.sampling import Bench, bench, take_sample
from dsharness.servers import Seed
from dsimages.building import build_image

WORKERS = 2

Progress = Callable[[str, str], None]  # (row, what is happening)
Finished = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What every bench of one laboratory has in common."""

    matrix: Matrix
    arm: Arm
    users: int
    cpus: CpuPlan
    relock: bool = False
    keep: bool = False

    @property
    def seed(self) -> Seed:
        return Seed(users=self.users, salts=self.users, arm=self.arm)


class Laboratory:
    """Owns the benches of a campaign; leaving it removes every container."""

    def __init__(self, engine: Engine, plan: Plan, progress: Progress) -> None:
        self._engine = engine
        self._plan = plan
        self._progress = progress
        self._resources = ExitStack()
        self._benches: dict[str, tuple[Bench, ExitStack]] = {}
        self._loader: Image | None = None
        self.goldens: dict[str, Golden] = {}
        self.failures: dict[str, CandidateError] = {}

    def __enter__(self) -> Self:
        for orphan in reap(self._engine):
            self._progress(orphan, "removed: its owner was killed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    @property
    def unmeasurable(self) -> dict[str, str]:
        """Rows that could not be prepared, and why."""
        return {row: str(error) for row, error in self.failures.items()}

    @property
    def environment(self) -> dict[str, Any]:
        return fingerprint(self._engine, self._plan.cpus)

    @property
    def images(self) -> dict[str, Image]:
        return {golden.image.key: golden.image for golden in self.goldens.values()}

    def prepare(self, rows: Iterable[str], finished: Finished) -> None:
        """Build images and golden states, two rows at a time; a row that fails is noted."""
        loader_row = self._plan.matrix.tools.ldclt
        pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="prepare")
        try:
            # The load generator's image comes first: no row can be measured without it.
            loader: Future[Image] = pool.submit(self._image, loader_row)
            work: dict[Future[Golden], str] = {pool.submit(self._golden, r): r for r in rows}
            for future in as_completed(work):
                row = work[future]
                try:
                    self.goldens[row] = future.result()
                except CandidateError as error:
                    self.failures[row] = error
                finished(row)
            self._loader = loader.result()
        except BaseException:
            stop_all()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def sample(self, row: str, workload: Workload, *, campaign_id: str, turn: int) -> Sample:
        """One run on a row's bench, started first if need be; a dead server gets a new one."""
        at = self._bench(row)
        sample = take_sample(at, workload, campaign_id=campaign_id, turn=turn)
        if not at.instance.alive:
            _, resources = self._benches.pop(row)
            resources.close()
        return sample

    def _image(self, row: str) -> Image:
        return build_image(
            self._engine,
            self._plan.matrix,
            self._plan.matrix.row(row),
            relock=self._plan.relock,
            on_progress=lambda what: self._progress(row, what),
        )

    def _golden(self, row: str) -> Golden:
        return golden_state(
            self._engine,
            self._image(row),
            self._plan.matrix.row(row).server,
            self._plan.seed,
            progress=lambda what: self._progress(row, what),
            keep=self._plan.keep,
        )

    def _bench(self, row: str) -> Bench:
        if row not in self._benches:
            if self._loader is None:
                raise WorkloadError("the laboratory was not prepared")
            resources = self._resources.enter_context(ExitStack())
            cpus, keep = self._plan.cpus, self._plan.keep
            instance = resources.enter_context(
                serve(self._engine, self.goldens[row], cpus, keep=keep)
            )
            place = resources.enter_context(
                bench(self._engine, instance, self._loader, cpus, self.environment, keep=keep)
            )
            self._benches[row] = (place, resources)
        return self._benches[row][0]
