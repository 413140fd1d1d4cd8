"""A search over commits that was stopped before all was told keeps the answers it had."""

from __future__ import annotations

from typing import Any

import pytest
from leasing_labs import QUESTION, Benches, search
from observers import RecordingObserver

from dsbisect.commits.commits_study import LabAnswers
from dsharness.model import Finding, LdcltWorkload
from dslab.campaign_loop import CampaignOrder
from dsresults.commits_result import CommitFindings
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes

WORKLOAD = LdcltWorkload(id="w", title="binds")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def standing(store: Store, observer: RecordingObserver, *, every: bool = False) -> Any:
    order = CampaignOrder(
        question=QUESTION, workload=WORKLOAD, search=Bayes(), lab=Benches(0), store=store,
        kind="commits",
    )  # fmt: skip
    lab: Any = Benches(0)
    answers = LabAnswers(laboratory=lab, store=store, observer=observer, every=every)
    return answers._standing(order)


def told(*campaigns: str) -> Finding:
    return Finding(found_at="2026-01-01T00:00:00+00:00", campaigns=campaigns, value={})


def test_an_answer_stands_when_what_came_after_it_was_stopped(store):
    """The lab was ended in the proof, or before it began."""
    answered = search(store, 0, RecordingObserver())
    store.put(told("another"))
    observer = RecordingObserver()
    assert standing(store, observer) == store.campaign(answered.id)
    assert observer.names == ["resumed", "answered"]


def test_an_answer_that_a_finding_rests_on_is_measured_anew(store):
    answered = search(store, 0, RecordingObserver())
    store.put(told(answered.id))
    assert standing(store, RecordingObserver()) is None


def test_the_newest_answer_counts(store):
    search(store, 0, RecordingObserver())
    newest = search(store, 0, RecordingObserver())
    store.put(told(newest.id))
    assert standing(store, RecordingObserver()) is None


@pytest.mark.parametrize("left", [(), (("a", "b"),)])
def test_who_asks_for_every_step_goes_on_from_the_first(store, left):
    answered = search(store, 0, RecordingObserver())
    assert answered.boundary is not None
    findings = CommitFindings(
        repository="r", good="a", bad="b", workload="w", settings="default", commits=1,
        whole=answered.boundary, campaigns=(answered.id,), left=left,
    )  # fmt: skip
    store.put(findings.finding)
    campaign = standing(store, RecordingObserver(), every=True)
    assert campaign == (store.campaign(answered.id) if left else None)
    assert standing(store, RecordingObserver()) is None
