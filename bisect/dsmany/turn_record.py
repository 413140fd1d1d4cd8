"""What a machine stores of its turn, as long as that is its own and it is what it said it is."""

from __future__ import annotations

from dataclasses import dataclass

from dsharness.errors import BusyError, DsbisectError, with_log_on
from dsharness.model import FleetMachine, RunState, Sample, SharedRun, Turn, TurnState, TurnTime
from dslab.campaign_loop import CampaignState
from dslab.laboratory import Laboratory
from dsmany.fleet import strayed
from dsmany.job_queue import JobQueue
from dsresults.store import Store
from dsresults.store.records import put


class UnlikeError(DsbisectError):
    """This machine cannot measure what the others measure."""


@dataclass(frozen=True, kw_only=True)
class TurnGuard:
    """Lets a machine store what it measures as long as the turn is its own."""

    store: Store
    run_id: str
    turn_id: str

    def check(self) -> None:
        """Raise BusyError when the run has ended, or another machine was given the turn."""
        run, turn = self.store.get(SharedRun, self.run_id), self.store.turn(self.turn_id)
        if run is None or run.state is not RunState.RUNNING:
            raise BusyError(f"run {self.run_id} has ended", hint="nothing is to be done")
        if turn is None or turn.state is not TurnState.PLANNED:
            raise BusyError(
                f"turn {self.turn_id} was given to another machine: this one gave no sign of life",
                hint="nothing is to be done: what was measured too late does not count",
            )


@dataclass(frozen=True, kw_only=True)
class SharedState(CampaignState):
    """A campaign's record of which the next step is asked for when a turn has ended."""

    jobs: JobQueue
    run_id: str
    lab: Laboratory
    machine: FleetMachine

    def add(self, sample: Sample) -> None:
        """UnlikeError, and nothing is stored, where it is not what the machine said it measures."""
        if why := strayed(sample, self.machine.id, self.machine.class_name):
            raise UnlikeError(
                f"{self.machine.name} is no longer what it was when it came: {why}",
                hint="start its worker again",
            )
        super().add(sample)

    def put(self, turn: Turn) -> None:
        """Store the end of a turn, its samples and the job that follows: all of it, or nothing."""
        if turn.state is TurnState.PLANNED:
            super().put(turn)
            return
        self.lease.check()
        refused = {name: with_log_on(why, self.machine.name) for name, why in turn.refused.items()}
        spent = TurnTime(**self.lab.spent.since_last())
        turn = turn.model_copy(update={"spent": spent, "refused": refused})
        with self.store.database.writing() as connection:
            put(connection, turn)
            for image in self.lab.images_of(turn.candidates):
                put(connection, image)
            self.jobs.advance(connection, self.run_id)
        self.by_id[turn.id] = turn
