"""A search of two workers in network namespaces of their own, over TLS, in which all goes wrong.

PostgreSQL runs in a third one. Workers are processes with the real queue, planner and store; only
their labs are made up.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cut_networks import DATABASE, Networks, joined_networks
from fleet_of_worlds import WorldStudy, now, prove_whole
from postgresql_cluster import Cluster, running_cluster
from sqlalchemy import text

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from shared_faults import FaultyFleet, WorldWorkers, end_worker, faulty

from dsharness.model import RunState, SharedRun, TurnState
from dsharness.process.deadline import Deadline, wait_until
from dsmany.fleet import DEAD_S
from dsmany.shared_answers import campaigns_of

pytestmark = pytest.mark.whole

NOTICED_S = 90.0  # half a minute for an answer, and some seconds for each new connection
PASSWORD = "of-a-test"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A database that two networks lead to."""

    networks: Networks
    cluster: Cluster

    def connections(self, fleet: FaultyFleet, number: int) -> list[bool]:
        """Those of a machine that the database knows: whether each is encrypted."""
        asked = text(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
            f"WHERE client_addr = '{self.networks.address(number)}'"
        )
        with fleet.store.database.reading() as connection:
            return list(connection.scalars(asked))


@pytest.fixture
def place() -> Iterator[Place]:
    with (
        joined_networks("a", "b") as networks,
        running_cluster(address=DATABASE, within=networks.within("db")) as cluster,
    ):
        cluster.execute(f"CREATE ROLE lab LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        yield Place(networks=networks, cluster=cluster)


def answers(fleet: FaultyFleet, run: SharedRun) -> list[object]:
    """Whom each question of a study blames, its proof included."""
    return [
        (campaign.kind, campaign.line, found.before, found.after, found.found)
        for campaign in campaigns_of(fleet.store, run)
        if (found := campaign.boundary) is not None
    ]


def in_a_turn(fleet: FaultyFleet, name: str, run: SharedRun) -> None:
    """Wait until a machine has a turn of this run."""

    def has() -> bool | None:
        return any(turn.machine == name for turn in fleet.store.planned_turns()) or None

    assert now(fleet.store, run).state is RunState.RUNNING
    wait_until(has, Deadline.after(120), what=f"a turn on {name}")


def ended(fleet: FaultyFleet, run: SharedRun) -> list[object]:
    def state() -> RunState | None:
        found = now(fleet.store, run).state
        return None if found is RunState.RUNNING else found

    assert wait_until(state, Deadline.after(240), what="the answer") is RunState.DONE
    prove_whole(fleet.store, run)
    for campaign in campaigns_of(fleet.store, run):
        turns = fleet.store.turns(campaign.id)
        assert TurnState.PLANNED not in {turn.state for turn in turns}
    return answers(fleet, run)


def cut_off(fleet: FaultyFleet, place: Place) -> None:
    """Worker a is behind a cut cable until it, its database and the others have noticed."""
    told = fleet.workers.folder / "told-a"
    place.networks.cut("a")
    try:
        deadline = Deadline.after(NOTICED_S)
        wait_until(
            lambda: not place.connections(fleet, 0) or None, deadline, what="the server's notice"
        )
        before = len(told.read_text())
        wait_until(
            lambda: "cannot be reached" in told.read_text()[before:] or None, deadline,
            what="the worker's notice",
        )  # fmt: skip
        time.sleep(max(0.0, DEAD_S + 16.0 - (NOTICED_S - deadline.left_s)))  # each 15 s one looks
    finally:
        place.networks.join("a")


def test_the_same_answer_though_network_worker_and_database_go(
    place: Place, tmp_path: Path
) -> None:
    """One search is left alone, the other one loses a network, a worker and the database."""
    with faulty(place.cluster, tmp_path, seed=1) as fleet:
        fleet.workers = WorldWorkers(
            url=place.cluster.tls_url(fleet.database, f"lab:{PASSWORD}"), folder=tmp_path,
            study=WorldStudy(proved=True), run_s=1.5, enter=place.networks.enter,
        )  # fmt: skip
        for name in ("a", "b"):
            fleet.pids[name] = fleet.workers.start(name)
        try:
            alone = ended(fleet, fleet.begin())
            encrypted = [each for number in (0, 1) for each in place.connections(fleet, number)]
            assert len(encrypted) > 2
            assert all(encrypted)
            run = fleet.begin()
            in_a_turn(fleet, "b", run)
            end_worker(fleet.pids["b"], signal.SIGKILL)
            place.cluster.restart()
            fleet.pids["b"] = fleet.workers.start("b")
            in_a_turn(fleet, "a", run)
            cut_off(fleet, place)
            assert ended(fleet, run) == alone
        finally:
            for pid in fleet.pids.values():
                end_worker(pid, signal.SIGINT)
        told = "".join(path.read_text() for path in tmp_path.glob("told-*"))
        assert "Traceback" not in told
        assert PASSWORD not in told
        assert list(fleet.left()) == []
        assert [place.networks.left(name) for name in ("a", "b")] == [[], []]
