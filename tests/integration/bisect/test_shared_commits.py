"""A real history searched by two real workers: one is killed, and so is the database.

User, workers and database are in network namespaces of their own: all that leads from one to the
other is PostgreSQL over TLS and a git daemon, next to the database. The workers know the database's
password, which must be seen nowhere.
"""

from __future__ import annotations

import io
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bind_history import ROW, history
from cut_networks import DATABASE, Networks, joined_networks
from debian_sources import debian_source
from fleet_of_worlds import prove_turns
from git_server import served_repository
from lab import Running, dsbisect, small_matrix, start
from postgresql_cluster import Cluster, running_cluster
from seed_history import History
from sqlalchemy import text

from dsharness.model import TurnState
from dsharness.paths import logs_home
from dsresults.store import Store

pytestmark = pytest.mark.whole

SECRET = "s3cret-of-the-lab"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder with a matrix, and the networks of a user, two machines and what these share."""

    folder: Path
    networks: Networks
    cluster: Cluster
    refs: str

    @property
    def url(self) -> str:
        return self.cluster.tls_url("lab", "guarded")

    def worker(self, name: str, cpu: str) -> Running:
        within = self.networks.within(name)
        running = start(
            self.folder, "machines", "worker", "--name", name, "--cpus", cpu, within=within
        )
        running.until(f"machine {name}")
        return running

    def encrypted(self) -> dict[str, bool]:
        """By the address of whoever is connected whether all its connections are."""
        asked = text(
            "SELECT host(client_addr) AS address, bool_and(ssl) AS whole FROM pg_stat_ssl "
            "JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL GROUP BY 1"
        )
        with Store.open(self.cluster.url("lab")) as store, store.database.reading() as connection:
            return {row.address: row.whole for row in connection.execute(asked)}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with (
        joined_networks("a", "b", "user") as networks,
        running_cluster(address=DATABASE, within=networks.within("db")) as cluster,
        served_repository(tmp_path / "refs.git", DATABASE, networks.within("db")) as refs,
    ):
        cluster.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
        cluster.execute("CREATE DATABASE lab OWNER guarded")
        yield Place(folder=tmp_path, networks=networks, cluster=cluster, refs=refs)


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


def search(place: Place, asked: tuple[str, ...], made: History) -> Search:
    """The answer though a machine, the user's command and the database die."""
    found, folder, there = Search(), place.folder, place.networks.within("user")
    workers = [place.worker(name, cpu) for name, cpu in (("a", "0"), ("b", "1"))]
    user = start(folder, *asked, "--on", place.url, "--refs", place.refs, within=there)
    readers = [read_on(each) for each in workers]
    try:
        run = user.until("run ").split()[1]
        made.folder.rename(folder / "gone")  # all that machines need is in the refs
        user.until(" on a\n")  # it has a turn
        everyone = [place.networks.address(number) for number in range(3)]
        assert place.encrypted() == dict.fromkeys(everyone, True)
        workers[0].end(signal.SIGKILL)
        user.until("/s")
        place.cluster.restart()
        user.until("turn")
        code, told = user.end(signal.SIGINT)
        assert (code, "detached" in told) == (130, True), told
        output = ("--json", "--output", str(folder / "report"))
        again = dsbisect(folder, "machines", "attach", run[:8], *output, limit_s=2400, within=there)
        assert again.returncode == 0, again.stderr
        gone = dsbisect(folder, "machines", "forget", "a", "--json", within=there)
        assert gone.returncode == 0, gone.stderr
        alive = dsbisect(folder, "machines", "--json", within=there)
        assert [machine["name"] for machine in json.loads(alive.stdout)] == ["b"]
    finally:
        codes = [each.end(signal.SIGTERM)[0] for each in workers if each.process.poll() is None]
        for reader in readers:
            reader.join()
    assert codes == [130]
    (folder / "gone").rename(made.folder)
    found.answer = json.loads(again.stdout)
    found.told = [again.stdout, again.stderr, alive.stdout]
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
            for table in ("procrastinate_jobs", "procrastinate_events", "documents")
            for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()
        ]
    return [exported.getvalue(), *rows]


def test_the_same_commit_and_proof_whatever_dies(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    asked = (
        "bisect", "commits", "--repo", str(made.folder), "--workload", "dns-udp", "--good",
        made.commits["the source"], "--bad", "HEAD",
    )  # fmt: skip
    # First, since images are made from packages, which no network of these machines leads to.
    alone = dsbisect(tmp_path, *asked, "--json", "--output", str(tmp_path / "alone"), limit_s=2400)
    assert alone.returncode == 0, alone.stderr
    passes = tmp_path / "pgpass"
    passes.write_text(f"*:*:*:*:{SECRET}\n")
    passes.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passes))
    monkeypatch.setenv("DSBISECT_ON", place.cluster.tls_url("lab", f"guarded:{SECRET}"))
    with command_lines() as seen:
        found = search(place, asked, made)
    with Store.open(place.cluster.url("lab")) as store:
        rows = prove_store(store)
    pages = [
        path.read_text(errors="replace")
        for folder in (tmp_path / "report", logs_home())
        for path in folder.rglob("*")
        if path.is_file()
    ]
    assert not [each[:200] for each in (*found.told, *rows, *pages, *seen) if SECRET in each]
    assert facts(found.answer) == facts(json.loads(alone.stdout))
    spent = found.answer["spent"]
    assert spent["machines"] == 2
    assert 0 < spent["named_s"] < spent["proved_s"] <= found.answer["seconds"]
    assert spent["runs_s"] > 0
    (culprit,) = found.answer["culprits"]
    assert [suspect["subject"] for suspect in culprit["suspects"]] == ["a sum for each query"]
    assert [each["confirms"] for each in culprit["proof"]] == [True, True, True]
