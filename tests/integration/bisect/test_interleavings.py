"""Every order in which machines claim, take, end, die and come back, as a machine of states.

The queue, the store and the planner are real, over a real PostgreSQL; the world is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fleet_of_worlds import (
    STEP,
    Fleet,
    WorldLab,
    WorldStudy,
    begun,
    finished,
    nothing,
    now,
    prove_turns,
    prove_whole,
)
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from postgresql_cluster import Cluster, running_cluster

from dsharness.model import RunState, TurnState
from dsmany.attached import cancel_run
from dsmany.fleet import campaign_id_of
from dsmany.shared_answers import campaigns_of
from dsresults.profile_pair import stored_profiles
from dsresults.store import Store

NAMES = ("a", "b", "c")
PICK = st.integers(min_value=0, max_value=1000)


class Interleavings(RuleBasedStateMachine):
    """A run on three machines: one question, then three at the same time, then profiles."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.store = Store.open(cluster.url(cluster.new_database()))
        self.fleet = Fleet(self.store, NAMES, study=WorldStudy(proved=True, profiled=True))
        for name in NAMES:
            self.fleet.labs[name] = WorldLab(STEP, machine=name)
        self.shared = begun(self.store, machines=3)

    @property
    def running(self) -> bool:
        return now(self.store, self.shared).state is RunState.RUNNING

    @rule(pick=PICK, twice=st.booleans())
    def job(self, pick: int, *, twice: bool) -> None:
        """Any job that waits is done; ``twice``: its worker dies before the queue knows of it."""
        if jobs := self.fleet.jobs():
            self.fleet.do(jobs[pick % len(jobs)], keep=twice)

    @rule(pick=PICK)
    def reaped(self, pick: int) -> None:
        workers = [self.fleet.workers[name] for name in sorted(self.fleet.workers)]
        workers[pick % len(workers)].reap()

    @precondition(lambda self: len(self.fleet.workers) > 1)
    @rule(pick=PICK)
    def dies_between_turns(self, pick: int) -> None:
        self.fleet.dies(sorted(self.fleet.workers)[pick % len(self.fleet.workers)])

    @precondition(lambda self: len(self.fleet.workers) > 1)
    @rule(samples=st.integers(min_value=0, max_value=1))
    def dies_in_a_turn(self, samples: int) -> None:
        """Before its first sample, or with half of the turn stored."""

        def killed() -> None:
            if lab.taken > before + samples:
                raise KeyboardInterrupt

        found = self._take()
        if found is None:
            return
        name, take = found
        lab = self.fleet.labs[name]
        before, lab.before_sample = lab.taken, killed
        take()
        lab.before_sample = nothing
        self.fleet.dies(name)

    @precondition(lambda self: len(self.fleet.workers) > 1)
    @rule()
    def cut_off_in_a_turn(self) -> None:
        """It gives no sign of life, others go on without it, and it ends its turn too late."""
        found = self._take()
        if found is None:
            return
        name, take = found
        lab, done = self.fleet.labs[name], list[bool]()

        def silent() -> None:
            if not done:
                done.append(True)
                self.fleet.dies(name)
                self.reaped(0)

        lab.before_sample = silent
        take()
        lab.before_sample = nothing

    def _take(self) -> tuple[str, Callable[[], None]] | None:
        """The first machine that has a turn, or is to profile, and how it does."""
        for job in self.fleet.jobs():
            name = job["queue_name"].removeprefix("machine/")
            if (
                job["task_name"] in {"dsbisect.take", "dsbisect.profile"}
                and name in self.fleet.workers
            ):
                return name, lambda job=job: self.fleet.do(job)
        return None

    @precondition(lambda self: len(self.fleet.workers) < len(NAMES))
    @rule()
    def comes_back(self) -> None:
        self.fleet.comes(next(name for name in NAMES if name not in self.fleet.workers))

    @invariant()
    def no_sample_is_lost_or_doubled(self) -> None:
        planned: list[str] = []
        for campaign in campaigns_of(self.store, self.shared):
            prove_turns(self.store, campaign.id)
            turns = self.store.turns(campaign.id)
            assert len({turn.id for turn in turns}) == len(turns)
            planned += [turn.machine for turn in turns if turn.state is TurnState.PLANNED]
        assert len(set(planned)) == len(planned)  # of whichever question

    def teardown(self) -> None:
        try:
            ended = finished(self.fleet, self.shared)
            assert (ended.state, ended.left_out) == (RunState.DONE, {}), (
                ended.why,
                self.fleet.told,
            )
            prove_whole(self.store, self.shared)
            assert len(stored_profiles(self.store, [campaign_id_of(self.shared, 0)])) == 1
            assert not cancel_run(self.store, self.shared)
        finally:
            self.fleet.end()
            self.store.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


def test_no_interleaving_loses_or_doubles_a_sample(cluster: Cluster) -> None:
    class Here(Interleavings):
        def __init__(self) -> None:
            super().__init__(cluster)

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=max(2, settings.default.max_examples // 2),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
