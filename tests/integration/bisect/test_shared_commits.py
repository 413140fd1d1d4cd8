"""A real history searched by two real workers: one is killed, and so is the database.

The workers know the database's password, which must be seen nowhere.
"""

from __future__ import annotations

import io
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bind_history import ROW, history
from debian_sources import debian_source
from fleet_of_worlds import prove_turns
from lab import Running, dsbisect, small_matrix, start
from postgresql_cluster import Cluster, running_cluster
from seed_history import History
from sqlalchemy import text

from dsharness.model import TurnState
from dsharness.paths import logs_home
from dsresults.store import Store

pytestmark = pytest.mark.whole

SECRET = "s3cret-of-the-lab"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        running.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
        running.execute("CREATE DATABASE lab OWNER guarded")
        yield running


def worker(folder: Path, name: str, cpu: str) -> Running:
    running = start(folder, "worker", "--name", name, "--cpus", cpu)
    running.until(f"machine {name}")
    return running


def read_on(running: Running) -> threading.Thread:
    """Read what it tells to its end, so that it never waits for a reader."""

    def read() -> None:
        assert running.process.stderr is not None
        running.lines += running.process.stderr

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return reader


@contextmanager
def command_lines() -> Iterator[set[str]]:
    """Every command line of this machine while the block runs."""
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            for place in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(place.read_bytes().decode(errors="replace"))
                except OSError:
                    continue

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield seen
    finally:
        ended.set()
        looker.join()


def facts(findings: dict[str, Any]) -> list[object]:
    """Whom an answer blames, and with which proof."""
    return [
        (
            [suspect["hash"] for suspect in culprit["suspects"]],
            [suspect["releases"] for suspect in culprit["suspects"]],
            culprit["boundary"]["direction"],
            [(each["title"], each["outcome"], each["confirms"]) for each in culprit["proof"]],
            [len(each["builds"]) for each in culprit["proof"]],
            [build["clean"] for each in culprit["proof"] for build in each["builds"]],
        )
        for culprit in findings["culprits"]
    ]


@dataclass
class Search:
    """What a user and two machines said, and all that anyone could read of it."""

    answer: dict[str, Any] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)


def search(folder: Path, cluster: Cluster, asked: tuple[str, ...], made: History) -> Search:
    """The answer though a machine, the user's command and the database die."""
    found = Search()
    refs = folder / "refs.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(refs)], check=True)
    workers = [worker(folder, name, cpu) for name, cpu in (("a", "0"), ("b", "1"))]
    user = start(folder, *asked, "--on", cluster.url("lab", "guarded"), "--refs", str(refs))
    readers = [read_on(each) for each in workers]
    try:
        run = user.until("run ").split()[1]
        made.folder.rename(folder / "gone")  # all that machines need is in the refs
        user.until(" on a")
        workers[0].end(signal.SIGKILL)
        user.until("/s")
        cluster.restart()
        user.until("turn")
        code, told = user.end(signal.SIGINT)
        assert (code, "detached" in told) == (130, True), told
        output = ("--json", "--output", str(folder / "report"))
        again = dsbisect(folder, "attach", run[:8], *output, limit_s=2400)
        assert again.returncode == 0, again.stderr
        gone = dsbisect(folder, "machines", "forget", "a", "--json")
        assert gone.returncode == 0, gone.stderr
        there = dsbisect(folder, "machines", "--json")
        assert [machine["name"] for machine in json.loads(there.stdout)] == ["b"]
    finally:
        codes = [each.end(signal.SIGTERM)[0] for each in workers if each.process.poll() is None]
        for reader in readers:
            reader.join()
    assert codes == [130]
    (folder / "gone").rename(made.folder)
    found.answer = json.loads(again.stdout)
    found.told = [again.stdout, again.stderr, there.stdout]
    found.told += [line for each in (*workers, user) for line in each.lines]
    return found


def prove_store(store: Store) -> list[str]:
    """No sample is lost or doubled, nothing is left begun; every row as text."""
    for campaign in store.campaigns():
        prove_turns(store, campaign.id)
        assert TurnState.PLANNED not in {turn.state for turn in store.turns(campaign.id)}
    exported = io.StringIO()
    store.export_jsonl(exported)
    with store.database.reading() as connection:
        rows = [
            str(dict(row))
            for table in ("procrastinate_jobs", "procrastinate_events", "runs", "machines")
            for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()
        ]
    return [exported.getvalue(), *rows]


def test_the_same_commit_and_proof_whatever_dies(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    passes = tmp_path / "pgpass"
    passes.write_text(f"*:*:*:*:{SECRET}\n")
    passes.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passes))
    monkeypatch.setenv("DSBISECT_ON", cluster.url("lab", f"guarded:{SECRET}"))
    asked = (
        "bisect", "commits", "--repo", str(made.folder), "--workload", "dns-udp", "--good",
        made.commits["the source"], "--bad", "HEAD",
    )  # fmt: skip
    with command_lines() as seen:
        found = search(tmp_path, cluster, asked, made)
    with Store.open(cluster.url("lab")) as store:
        rows = prove_store(store)
    pages = [
        path.read_text(errors="replace")
        for folder in (tmp_path / "report", logs_home())
        for path in folder.rglob("*")
        if path.is_file()
    ]
    assert not [each[:200] for each in (*found.told, *rows, *pages, *seen) if SECRET in each]
    alone = dsbisect(tmp_path, *asked, "--json", "--output", str(tmp_path / "alone"), limit_s=2400)
    assert alone.returncode == 0, alone.stderr
    one = facts(json.loads(alone.stdout))
    assert facts(found.answer) == one
    spent = found.answer["spent"]
    assert spent["machines"] == 2
    assert 0 < spent["named_s"] < spent["proved_s"] <= found.answer["seconds"]
    assert spent["runs_s"] > 0
    (culprit,) = found.answer["culprits"]
    assert [suspect["subject"] for suspect in culprit["suspects"]] == ["a sum for each query"]
    assert [each["confirms"] for each in culprit["proof"]] == [True, True, True]
