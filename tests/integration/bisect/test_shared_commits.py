"""A real history searched by two real workers: one is killed, and so is the database.

The workers know the database's password, which must be seen nowhere.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bind_history import ROW, history
from debian_sources import debian_source
from fleet_of_worlds import prove_turns
from lab import Running, dsbisect, small_matrix, start
from postgresql_cluster import Cluster, running_cluster
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


def test_the_same_commit_and_proof_whatever_dies(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    refs = tmp_path / "refs.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(refs)], check=True)
    passes = tmp_path / "pgpass"
    passes.write_text(f"*:*:*:*:{SECRET}\n")
    passes.chmod(0o600)
    monkeypatch.setenv("DSBISECT_ON", cluster.url("lab", f"guarded:{SECRET}"))
    asked = (
        "bisect", "commits", "--repo", str(made.folder), "--workload", "dns-udp", "--good",
        made.commits["the source"], "--bad", "HEAD",
    )  # fmt: skip
    with command_lines() as seen:
        workers = [worker(tmp_path, name, cpu) for name, cpu in (("a", "0"), ("b", "1"))]
        monkeypatch.setenv("PGPASSFILE", str(passes))
        user = start(tmp_path, *asked, "--on", cluster.url("lab", "guarded"), "--refs", str(refs))
        try:
            readers = [read_on(each) for each in workers]
            run = user.until("run ").split()[1]
            made.folder.rename(tmp_path / "gone")  # all that machines need is in the refs
            user.until(" on a")
            workers[0].end(signal.SIGKILL)
            user.until("/s")
            cluster.restart()
            user.until("turn")
            code, told = user.end(signal.SIGINT)
            assert (code, "detached" in told) == (130, True), told
            again = dsbisect(
                tmp_path, "attach", run[:8], "--json", "--output", str(tmp_path / "report"),
                limit_s=2400,
            )  # fmt: skip
            assert again.returncode == 0, again.stderr
            gone = dsbisect(tmp_path, "machines", "forget", "a", "--json")
            there = dsbisect(tmp_path, "machines", "--json")
        finally:
            codes = [each.end(signal.SIGTERM)[0] for each in workers if each.process.poll() is None]
            for reader in readers:
                reader.join()
    assert codes == [130]
    assert gone.returncode == 0, gone.stderr
    assert [machine["name"] for machine in json.loads(there.stdout)] == ["b"]
    with Store.open(cluster.url("lab")) as store:
        campaigns, samples = store.campaigns(), store.samples()
        for campaign in campaigns:
            prove_turns(store, campaign.id)
            assert TurnState.PLANNED not in {turn.state for turn in store.turns(campaign.id)}
        with store.database.reading() as connection:
            jobs = connection.execute(text("SELECT * FROM procrastinate_jobs")).mappings().all()
            runs = connection.execute(text("SELECT * FROM runs")).mappings().all()
        exported = tmp_path / "store.jsonl"
        with exported.open("w", encoding="utf-8") as stream:
            store.export_jsonl(stream)
    assert {sample.machine.id for sample in samples}
    told = [str([dict(row) for row in (*jobs, *runs)]), again.stdout, again.stderr, *seen]
    told += [line for each in (*workers, user) for line in each.lines]
    files = [exported, *(tmp_path / "report").rglob("*"), *logs_home().rglob("*")]
    told += [path.read_text(errors="replace") for path in files if path.is_file()]
    assert not [each[:200] for each in told if SECRET in each]
    (tmp_path / "gone").rename(made.folder)
    alone = dsbisect(tmp_path, *asked, "--json", "--output", str(tmp_path / "alone"), limit_s=2400)
    assert alone.returncode == 0, alone.stderr
    (one,) = facts(json.loads(alone.stdout))
    assert facts(json.loads(again.stdout)) == [one]
