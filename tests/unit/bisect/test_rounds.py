"""Turns without a search: whose turn it is, when it is enough, and how a campaign goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import WorldBenches
from observers import RecordingObserver
from worlds import World, sample_of, turns_of

from dsharness.errors import InstanceError
from dsharness.model import Campaign, LdcltWorkload, Sample
from dslab.campaign_loop import CampaignOrder
from dsresults.store import Store
from dssearch.planner import Rounds, advance
from dssearch.question import Answer, History, Measure, Question

WORKLOAD = LdcltWorkload(id="w", title="binds")
PAIR = Question(series_id="s", line=("a", "b"), workload_id="w", settings_id="default")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def run(store: Store, rounds: Rounds, benches: WorldBenches) -> Campaign:
    return CampaignOrder(
        question=PAIR, workload=WORKLOAD, search=rounds, lab=benches, store=store, kind="measure"
    ).run(RecordingObserver())


def taken(history: History) -> list[Sample]:
    return [sample for group in history.samples.values() for sample in group]


@given(candidates=st.integers(1, 5), turns=st.integers(0, 12))
def test_each_is_as_often_first_as_the_others(candidates: int, turns: int) -> None:
    line = tuple(f"c{number}" for number in range(candidates))
    question = Question(series_id="s", line=line, workload_id="w", settings_id="default")
    history, first = History(), dict.fromkeys(line, 0)
    rounds = Rounds.of(turns)
    while isinstance(step := advance(question, rounds, history, turns_of(taken(history))), Measure):
        assert sorted(step.candidates) == sorted(line)
        assert step.remaining == (turns - step.turn - 1) * candidates
        first[step.candidates[0]] += 1
        history = history.after([sample_of(name, 1.0, step.turn) for name in line], {})
    assert isinstance(step, Answer)
    assert not step.boundary.found
    assert history.rounds == turns
    assert max(first.values()) - min(first.values()) <= 1


def test_what_has_no_end_goes_on_with_its_samples(store: Store) -> None:
    def until(number: int) -> Rounds:
        return Rounds(missing=Rounds.of(number).missing, open_end=True)

    first = run(store, until(2), WorldBenches(World({"a": 1, "b": 2})))
    again = run(store, until(3), WorldBenches(World({"a": 1, "b": 2})))
    assert (first.id, first.boundary) == (again.id, None)
    taken = [(each.turn, each.candidate_id) for each in store.samples(campaign_id=first.id)]
    assert sorted(taken) == [(turn, name) for turn in range(3) for name in "ab"]


def test_nothing_is_said_without_each_candidate(store: Store) -> None:
    with pytest.raises(InstanceError, match="b did not become ready"):
        run(store, Rounds.of(2), WorldBenches(World({"a": 1, "b": 2}), refuses={"b"}))
    assert store.samples() == []
