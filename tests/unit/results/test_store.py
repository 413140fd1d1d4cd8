"""The store keeps what it is given, once, and gives it back in time order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_values import (
    BOUNDARY,
    IMAGE,
    UNFINISHED,
    prove_campaigns_that_could_not_measure_are_found,
    prove_kill_keeps_what_was_stored,
    prove_writers_lose_nothing,
    sample,
)

from dsharness.errors import StoreError, UsageError
from dsharness.model import Campaign, Finding, LdcltWorkload, Turn, TurnState
from dsharness.model.campaign import FindingKind
from dsresults.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.db") as opened:
        yield opened


def test_a_sample_is_kept_once(store: Store) -> None:
    assert store.add_sample(sample("a"))
    assert not store.add_sample(sample("a"))
    assert store.samples() == [sample("a")]
    assert store.sample("a") == sample("a")
    assert store.sample("b") is None


def test_an_id_is_never_reused(store: Store) -> None:
    store.add_sample(sample("a", errors=0))
    with pytest.raises(StoreError, match="another errors: '0', not '7'"):
        store.add_sample(sample("a", errors=7))
    assert store.samples() == [sample("a", errors=0)]


def test_what_is_stored_is_seen_by_others_at_once(store: Store, tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as other:
        store.add_sample(sample("a"))
        assert other.samples() == [sample("a")]


def test_samples_come_in_time_order_however_the_time_is_spelt(store: Store) -> None:
    for identity, started_at in [
        ("third", "2026-01-01T12:00:01Z"),
        ("second", "2026-01-01T13:30:00.5+01:30"),
        ("first", "2026-01-01T12:00:00"),
    ]:
        store.add_sample(sample(identity, started_at=started_at))
    assert [one.id for one in store.samples()] == ["first", "second", "third"]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["a", "b", "c"]),
        ({"campaign_id": "c-9"}, ["b"]),
        ({"candidate_id": "debian-13"}, ["c"]),
        ({"workload_id": "none-such"}, []),
        ({"settings_id": "default", "image_key": "other"}, ["a"]),
    ],
)
def test_samples_are_chosen_by_everything_given(
    store: Store, given: dict[str, str], found: list[str]
) -> None:
    store.add_sample(sample("a", image_key="other"))
    store.add_sample(sample("b", campaign_id="c-9"))
    store.add_sample(sample("c", candidate_id="debian-13"))
    assert [one.id for one in store.samples(**given)] == found


def test_samples_are_counted_by_campaign(store: Store) -> None:
    for identity, campaign in [("a", "c-1"), ("b", "c-1"), ("c", "c-2")]:
        store.add_sample(sample(identity, campaign_id=campaign))
    assert store.sample_counts() == {"c-1": 2, "c-2": 1}


def unfinished(identity: str, **changes: object) -> Campaign:
    return UNFINISHED.model_copy(update={"id": identity, **changes})


def resumable(store: Store, fingerprint: str) -> Campaign | None:
    question = {name: getattr(UNFINISHED, name) for name in ("kind", "series_id", "workload_id")}
    return store.unfinished_campaign(**question, settings_id="default", fingerprint=fingerprint)


def test_the_newest_unfinished_campaign_of_the_same_question_and_setup_is_resumed(
    store: Store,
) -> None:
    mark = UNFINISHED.fingerprint
    store.add_campaign(unfinished("new", started_at="2026-11-21T12:00:00Z"))
    store.add_campaign(unfinished("old"))
    store.add_campaign(unfinished("elsewhere", fingerprint="x"))
    store.add_campaign(unfinished("other", workload_id="bind-one"))
    assert getattr(resumable(store, mark), "id", None) == "new"
    store.finish_campaign("new", BOUNDARY, "2026-11-21T13:00:00Z")
    assert getattr(resumable(store, mark), "id", None) == "old"
    assert resumable(store, "y") is None


def test_campaigns_that_could_not_measure_a_candidate_are_found(store: Store) -> None:
    prove_campaigns_that_could_not_measure_are_found(store)


def test_a_campaign_is_answered_once(store: Store) -> None:
    store.add_campaign(unfinished("c"))
    assert store.campaigns(finished=True) == []
    store.finish_campaign("c", BOUNDARY, "2026-11-21T13:00:00Z")
    store.finish_campaign("c", BOUNDARY, "2026-11-21T13:00:00Z")
    answered = unfinished("c", boundary=BOUNDARY, finished_at="2026-11-21T13:00:00Z")
    assert store.campaign("c") == answered
    assert store.campaigns(finished=False) == []
    with pytest.raises(StoreError, match="was already answered at 2026-11-21T13:00:00Z"):
        store.finish_campaign("c", BOUNDARY, "2026-11-21T14:00:00Z")
    assert not store.add_campaign(unfinished("c"))
    assert store.campaign("c") == answered


def test_the_beginning_of_an_id_is_enough_where_it_is_the_only_one(store: Store) -> None:
    for each in ("abc", "abcd", "b-1"):
        store.add_campaign(unfinished(each))
    assert [store.whole_id(each) for each in ("b", "abcd", "abc", "x")] == [
        "b-1",
        "abcd",
        "abc",
        "x",
    ]
    with pytest.raises(UsageError, match=r"2 ids in .* begin with 'ab'"):
        store.whole_id("ab")


def test_an_unknown_campaign_cannot_be_answered(store: Store) -> None:
    with pytest.raises(StoreError, match="has no campaign 'c-404'"):
        store.finish_campaign("c-404", BOUNDARY, "2026-11-21T13:00:00Z")


def test_the_newest_manifest_of_an_image_counts_and_the_old_one_stays(store: Store) -> None:
    assert store.image(IMAGE.key) is None
    assert store.add_image(IMAGE)
    assert not store.add_image(IMAGE)
    drifted = IMAGE.model_copy(update={"packages": {"389-ds-base": "2.3.2"}})
    assert store.add_image(drifted)
    assert store.image(IMAGE.key) == drifted
    assert str(store).endswith("s.db")


@pytest.mark.whole
def test_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    prove_writers_lose_nothing(tmp_path / "new.db")


@pytest.mark.whole
def test_a_killed_writer_leaves_the_store_intact(tmp_path: Path) -> None:
    prove_kill_keeps_what_was_stored(tmp_path / "new.db")


def test_findings_are_chosen_by_kind_or_by_the_campaign_that_they_rest_on(store: Store) -> None:
    def told(kind: FindingKind, *campaigns: str, at: str = "2026-11-27T12:00:00Z") -> Finding:
        return Finding(kind=kind, found_at=at, campaigns=campaigns, value={})

    one, other = told("profile", "a"), told("profile", "b", at="2026-11-27T11:00:00Z")
    both, alarm = told("commits", "a", "b"), told("alarm")
    for each in (one, other, both, alarm):
        assert store.add_finding(each)
    assert store.findings("profile") == [other, one]
    assert store.findings("alarm", "commits") == [each for each in store.findings()
                                                  if each in (alarm, both)]  # fmt: skip
    assert store.findings_on("profile", ["a", "none"]) == [one]
    assert store.findings_on("commits", ["a"]) == [], "it rests on two"
    assert store.findings_on("profile", []) == []


def test_only_planned_turns_are_somebody_s_to_take(store: Store) -> None:
    def turn(number: int, state: TurnState) -> Turn:
        load = LdcltWorkload(id="w", title="binds")
        return Turn(
            campaign_id=f"c{number}", number=number, candidates=("a",), workload=load, state=state
        )

    turns = [turn(number, state) for number, state in enumerate(TurnState)]
    for each in turns:
        store.put_turn(each)
    assert [each.state for each in store.planned_turns()] == [TurnState.PLANNED]
    store.add_campaign(unfinished("there"))
    assert store.campaigns_there({"there", "not there"}) == {"there"}
