"""A search over commits that was stopped in its proof keeps the answer it had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from claiming_labs import QUESTION, Benches, search
from watchers import RecordingWatcher

from dsbisect.commits.commits_study import CommitsStudy, _interrupted
from dsharness.model import Campaign, LdcltWorkload, Settings
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes

WORKLOAD = LdcltWorkload(id="w", title="binds")
ASK: Any = SimpleNamespace(workload=WORKLOAD, settings=Settings(id="default"), metric="cost")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def chase(store: Store, watcher: RecordingWatcher) -> Any:
    everything: dict[str, Any] = {
        "ask": ASK, "scope": None, "supply": None, "laboratory": Benches(0), "store": store,
        "watcher": watcher, "options": None, "interrupted": _interrupted("s", ASK, store),
    }  # fmt: skip
    return CommitsStudy(**everything)


def proof(started_at: str) -> Campaign:
    return Campaign(
        id=f"proof of {started_at}", kind="commits", series_id="s", workload_id="w",
        settings_id="default", started_at=started_at, line=("b", "c"),
    )  # fmt: skip


def test_an_answer_stands_when_what_came_after_it_was_stopped(store):
    answered = search(store, 0, RecordingWatcher())
    watcher = RecordingWatcher()
    assert chase(store, watcher)._stands(QUESTION, Bayes()) is None  # it came to its end
    store.add_campaign(proof("2999-01-01T00:00:00+00:00"))
    assert chase(store, watcher)._stands(QUESTION, Bayes()) == store.campaign(answered.id)
    assert watcher.names == ["resumed", "answered"]


def test_an_answer_from_before_another_stop_does_not(store):
    store.add_campaign(proof("2001-01-01T00:00:00+00:00"))
    search(store, 0, RecordingWatcher())
    assert chase(store, RecordingWatcher())._stands(QUESTION, Bayes()) is None
