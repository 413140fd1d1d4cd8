"""A watch whose searches are done by workers: what is begun, found again, and never an alarm."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bind_history import ROW, history
from debian_sources import debian_source
from histories import Past
from lab import Running, dsbisect, small_matrix, start
from observers import RecordingObserver
from postgresql_cluster import Cluster, running_cluster

from dsbisect.commits.commit_range import laid_range
from dsbisect.commits.commits_request import CommitsRequest
from dsbisect.search_options import SearchOptions
from dsbisect.watch_searches import Outcome, SharedSearches
from dsharness.errors import InconclusiveError
from dsharness.matrix import find_settings, find_workload, load_matrix
from dsharness.model import Campaign, Matrix, RunState, SharedRun
from dsmany.attached import cancel_run
from dsmany.fleet import MachineCount, campaign_id_of
from dsresults.commits_result import CommitFindings
from dsresults.store import Store
from dsresults.store.documents import change_document
from dssearch.question import Question

ROOT = Path(__file__).parents[3]
WATCH = """\
id: bind
repository: {repo}
branches:
  - {{name: watched, since: {since}}}
loads:
  - {{workload: dns-udp}}
smallest_pct: 50
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@dataclass(kw_only=True)
class Asking:
    """A watch that asks one question, as often as it is told to."""

    ask: CommitsRequest
    store: Store
    observer: RecordingObserver

    def begin(self, *told: str) -> Outcome:
        searches = SharedSearches(store=self.store, machines=MachineCount.read("2"))
        scope = laid_range(self.ask)
        return searches.begin(self.ask, scope, SearchOptions(), self.observer, told)

    @property
    def runs(self) -> list[SharedRun]:
        return self.store.find(SharedRun)

    def answered(self, run: SharedRun) -> str:
        """Answer a run as workers would; its campaign."""
        scope = laid_range(self.ask)
        question = Question(
            series_id=scope.name, line=scope.points, workload_id="w", settings_id="default"
        )
        boundary = question.boundary(found=False, direction="none", summary="no difference")
        campaign = Campaign(
            id=campaign_id_of(run, 0), kind="commits", line=question.line,
            series_id=question.series_id, workload_id="w", settings_id="default",
            started_at=run.started_at, finished_at=run.started_at, boundary=boundary,
        )  # fmt: skip
        findings = CommitFindings(
            repository=self.ask.repository, good=scope.good, bad=scope.bad, workload="w",
            settings="default", commits=scope.commits, whole=boundary, campaigns=(campaign.id,),
        )  # fmt: skip
        self.store.put(campaign)
        self.store.put(findings.finding)
        with self.store.database.writing() as connection:
            change_document(connection, run.model_copy(update={"state": RunState.DONE}))
        return campaign.id


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix(ROOT / "matrix.yaml")


@pytest.fixture
def asking(
    matrix: Matrix, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Asking]:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    past = Past.begin(tmp_path / "repo")
    for name in ("one", "two", "three"):
        past.commit(name)
    ask = CommitsRequest(
        matrix=matrix, workload=find_workload(matrix, "bind-one"),
        settings=find_settings(matrix, "default"), repository=str(past.folder),
        good=past["one"], bad=past["three"],
    )  # fmt: skip
    with Store.open(cluster.url(cluster.new_database())) as store:
        yield Asking(ask=ask, store=store, observer=RecordingObserver())


def test_a_search_that_is_under_way_is_found_again(asking: Asking) -> None:
    assert asking.begin()() is None
    assert asking.begin()() is None, "as after a watch was ended, and began again"
    assert len(asking.runs) == 1
    said = [record for record in asking.observer.records if record[0] == "preparing"]
    assert "waiting for a machine" in str(said[0])


def test_an_answer_that_nobody_was_told_of_is_not_measured_again(asking: Asking) -> None:
    asking.begin()
    campaign = asking.answered(asking.runs[0])
    found = asking.begin()()
    assert found is not None
    assert found.findings.campaigns == (campaign,)
    assert len(asking.runs) == 1
    asking.begin(campaign)
    assert len(asking.runs) == 2, "undecided, it is asked again"


def test_a_search_that_was_cancelled_ends_no_watch(asking: Asking) -> None:
    outcome = asking.begin()
    cancel_run(asking.store, asking.runs[0])
    with pytest.raises(InconclusiveError, match="was cancelled"):
        outcome()
    asking.begin()
    assert [run.state for run in asking.runs] == [RunState.CANCELLED, RunState.RUNNING]


def test_a_database_that_is_away_is_waited_for(asking: Asking, cluster: Cluster) -> None:
    outcome, name = asking.begin(), asking.store.database.location.url.database
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    cluster.execute(ended, f"ALTER DATABASE {name} RENAME TO away")
    assert outcome() is None
    cluster.execute(f"ALTER DATABASE away RENAME TO {name}")
    assert "does not answer" in str(asking.observer.records[-1])
    campaign = asking.answered(asking.runs[0])
    found = outcome()
    assert found is not None
    assert found.findings.campaigns == (campaign,)


def end(worker: Running) -> None:
    if worker.process.poll() is None:
        worker.end(signal.SIGTERM)


@pytest.mark.whole
def test_a_slow_commit_is_named_by_a_worker_though_the_database_dies(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    slow = made.commits["a sum for each query"]
    made.git("branch", "watched", made.commits["a note in queries"])
    (tmp_path / "watch.yaml").write_text(
        WATCH.format(repo=made.folder, since=made.commits["the source"]), encoding="utf-8"
    )
    url = cluster.url(cluster.new_database())
    monkeypatch.setenv("DSBISECT_ON", url)
    refs = tmp_path / "refs.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(refs)], check=True)
    errors = (tmp_path / "worker.log").open("w", encoding="utf-8")
    worker = start(tmp_path, "machines", "worker", "--name", "a", errors=errors)
    watching = start(
        tmp_path, "watch", "run", "watch.yaml", "--every", "1", "--on", url, "--refs", str(refs)
    )
    try:
        watching.until("looking again")
        made.git("branch", "--force", "watched", made.commits["another note in zones"])
        watching.until("turn 0")
        cluster.restart()
        told = watching.until(": named")
        assert f"alarm {slow[:12]}: named" in told, "".join(watching.lines)
        watching.until("looking again")
        assert watching.end(signal.SIGINT)[0] == 130
    finally:
        end(watching)
        end(worker)
        errors.close()
    shown = dsbisect(tmp_path, "watch", "show", "bind", "--store", url, "--json")
    state = json.loads(shown.stdout)
    (series,) = state["series"]
    assert [tip["direction"] for tip in series["tips"]] == ["none", "slower"]
    assert [share["turns"] > 0 for tip in series["tips"] for share in tip["machines"]] == [True] * 2
    (alarm,) = state["alarms"]
    assert (alarm["state"], alarm["commit"]) == ("named", slow)
    states = [event["state"] for event in alarm["events"]]
    assert (states[0], states[-1]) == ("new", "named")
    assert "costs" in alarm["title"]
