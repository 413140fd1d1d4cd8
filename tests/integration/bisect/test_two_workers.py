"""Two real workers over a real PostgreSQL search Debian's rows; one is killed in the middle."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Running, dsbisect, small_matrix, start
from postgresql_cluster import running_cluster

from dsharness.model import SharedRun, TurnState
from dsharness.process.deadline import Deadline, wait_until
from dsresults.store import Store

pytestmark = pytest.mark.whole

ROWS = ("bisect", "rows", "--series", "debian", "--workload", "bind-one")


@pytest.fixture
def url() -> Iterator[str]:
    with running_cluster() as cluster:
        yield cluster.url(cluster.new_database())


def worker(folder: Path, url: str, name: str, cpu: str) -> Running:
    running = start(folder, "machines", "worker", "--on", url, "--name", name, "--cpus", cpu)
    running.until(f"machine {name}")
    return running


def test_a_search_survives_the_kill_of_a_worker(tmp_path: Path, url: str) -> None:
    small_matrix(tmp_path)
    workers = [worker(tmp_path, url, name, cpu) for name, cpu in (("a", "0"), ("b", "1"))]
    try:
        asked = start(tmp_path, *ROWS, "--on", url)
        run = asked.until("run ").split()[1]
        asked.until("on a")  # it has a turn
        workers[0].end(signal.SIGKILL)
        asked.end(signal.SIGINT)  # detached
        with Store.open(url) as store:
            (campaign,) = store.campaigns()
            wait_until(
                lambda: (store.campaign(campaign.id) or campaign).boundary, Deadline.after(900),
                what="the answer of the machine that is left",
            )  # fmt: skip
            samples, turns = store.samples(), store.turns(campaign.id)
        again = dsbisect(tmp_path, "machines", "attach", run[:8], "--on", url, "--json")
        assert again.returncode == 0, again.stderr
    finally:
        told = [each.end(signal.SIGTERM) for each in workers if each.process.poll() is None]
    assert [code for code, _ in told] == [130]
    whole = {(turn.number, turn.attempt) for turn in turns if turn.state is TurnState.DONE}
    counted = [each for each in samples if (each.turn, each.attempt) in whole]
    expected = [turn.sample_id(name) for turn in turns if turn.state is TurnState.DONE
                for name in turn.candidates]  # fmt: skip
    assert sorted(each.id for each in counted) == sorted(expected)
    alone = dsbisect(tmp_path, *ROWS, "--json")
    assert boundary_of(again.stdout) == boundary_of(alone.stdout)


def boundary_of(told: str) -> list[tuple[str, str]]:
    """Where each question of a report in JSON turned slow."""
    columns = [
        column for each in json.loads(told)["sections"] for column in each["comparison"]["columns"]
    ]
    return [(each["boundary"]["before"], each["boundary"]["after"]) for each in columns]


def test_a_study_whose_labs_follow_from_what_servers_tell_is_shared(
    tmp_path: Path, url: str
) -> None:
    """A worker asks the server what it offers, and has a lab for each scheme of it."""
    small_matrix(tmp_path)
    asked = ("measure", "schemes", "debian-12", "--users", "40", "--runs", "2", "--json")
    asked += ("--scheme", "SSHA512", "--scheme", "PBKDF2_SHA256", "--on", url)
    workers = [worker(tmp_path, url, name, cpu) for name, cpu in (("a", "0"), ("b", "1"))]
    try:
        done = dsbisect(tmp_path, *asked, limit_s=900)
    finally:
        told = [each.end(signal.SIGTERM) for each in workers]
    assert done.returncode == 0, done.stderr
    assert [code for code, _ in told] == [130, 130]
    lines = {line["scheme"]: line for line in json.loads(done.stdout)["lines"]}
    assert {scheme: line["runs"] for scheme, line in lines.items()} == {
        "SSHA512": 2, "PBKDF2_SHA256": 2,
    }  # fmt: skip
    with Store.open(url) as store:
        (run,) = store.find(SharedRun)
        assert {campaign.lab for campaign in store.campaigns()} == set(run.prepared.labs)
        assert len(run.prepared.labs) == 2
