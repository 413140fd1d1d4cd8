"""A campaign's samples give its steps and its answer again."""

from __future__ import annotations

import pytest
from measured import WorldBenches as Benches
from observers import RecordingObserver
from worlds import TEN_RUNS, World

from dsharness.model import LdcltWorkload
from dslab.campaign_loop import CampaignOrder
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Costs
from dssearch.question import Question
from dssearch.search_record import replay, search_of

LINE = ("a", "b", "c", "d", "e", "f", "g", "h")
QUESTION = Question(series_id="s", line=LINE, workload_id="w", settings_id="default")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def world(step):
    return World({name: 1 if number < step else 9 for number, name in enumerate(LINE)})


def run(store, benches, search=None):
    workload = LdcltWorkload(id="w", title="binds")
    return CampaignOrder(
        question=QUESTION,
        workload=workload,
        search=search or TEN_RUNS,
        lab=benches,
        store=store,
        kind="commits",
    ).run(RecordingObserver())


PLACES = [
    (1, (), {}),
    (4, ("d",), {}),  # just before the step
    (4, ("c", "d", "e"), {"b": "no such package"}),  # all around it
    (7, (), {"b": "no such package"}),
    (7, ("d",), {}),
    (1, ("c", "d", "e"), {}),
]


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("search", "step", "refuses", "known"),
    [
        *((Bayes(), *place) for place in PLACES),
        *((Bayes(survey_up_to=9), *place) for place in PLACES[1:3]),
    ],
)
def test_the_same_answer_bit_for_bit(store, search, step, refuses, known):
    done = run(store, Benches(world(step), refuses, unmeasurable=known or {}), search)
    again = replay(done, store.samples(campaign_id=done.id), search_of(done))
    assert again.boundary == done.boundary
    assert again.agrees is True
    taken = [sample.id for _, samples in again.steps for sample in samples]
    assert sorted(taken) == sorted(sample.id for sample in store.samples(campaign_id=done.id))


def test_an_interrupted_search_says_what_it_would_measure_next(store):
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(world(4), stop_after=7))
    (campaign,) = store.campaigns()
    again = replay(campaign, store.samples(campaign_id=campaign.id), TEN_RUNS)
    assert again.boundary is None
    assert again.agrees is None
    assert again.next_turn is not None
    assert sum(len(samples) for _, samples in again.steps) <= 7


def test_an_answer_that_was_edited_is_seen(store):
    done = run(store, Benches(world(4)))
    other = done.boundary.model_copy(update={"after": "h"})
    edited = done.model_copy(update={"boundary": other})
    again = replay(edited, store.samples(campaign_id=done.id), TEN_RUNS)
    assert again.agrees is False


@pytest.mark.few(1)
@pytest.mark.parametrize("stop_after", [1, 2, 4])
def test_an_interrupted_search_that_went_on_gives_its_answer_again(store, stop_after):
    """Also when other candidates were ready by then, and when a turn was cut in two."""
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(world(4), stop_after=stop_after), Bayes())
    done = run(store, Benches(world(4)), Bayes(costs=Costs(ready=frozenset("abcd"))))
    assert len(store.campaigns()) == 1
    again = replay(done, store.samples(campaign_id=done.id), search_of(done))
    assert again.agrees is True
