"""The store keeps what it is given, once, and gives it back in time order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
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
from dsharness.model import Campaign, Finding, FleetMachine, LdcltWorkload, Turn, TurnState
from dsharness.model.campaign import FindingKind
from dsresults.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.db") as opened:
        yield opened


def test_a_sample_is_kept_once(store: Store) -> None:
    assert store.put(sample("a"))
    assert not store.put(sample("a"))
    assert store.samples() == [sample("a")]
    assert store.sample("a") == sample("a")
    assert store.sample("b") is None


def test_an_id_is_never_reused(store: Store) -> None:
    store.put(sample("a", errors=0))
    with pytest.raises(StoreError, match="another errors: '0', not '7'"):
        store.put(sample("a", errors=7))
    assert store.samples() == [sample("a", errors=0)]


def test_what_is_stored_is_seen_by_others_at_once(store: Store, tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as other:
        store.put(sample("a"))
        assert other.samples() == [sample("a")]


def test_samples_come_in_time_order_however_the_time_is_spelt(store: Store) -> None:
    for identity, started_at in [
        ("third", "2026-01-01T12:00:01Z"),
        ("second", "2026-01-01T13:30:00.5+01:30"),
        ("first", "2026-01-01T12:00:00"),
    ]:
        store.put(sample(identity, started_at=started_at))
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
    store.put(sample("a", image_key="other"))
    store.put(sample("b", campaign_id="c-9"))
    store.put(sample("c", candidate_id="debian-13"))
    assert [one.id for one in store.samples(**given)] == found


def test_samples_are_counted_by_campaign(store: Store) -> None:
    for identity, campaign in [("a", "c-1"), ("b", "c-1"), ("c", "c-2")]:
        store.put(sample(identity, campaign_id=campaign))
    assert store.sample_counts() == {"c-1": 2, "c-2": 1}


def unfinished(identity: str, **changes: object) -> Campaign:
    return UNFINISHED.model_copy(update={"id": identity, **changes})


def test_campaigns_are_chosen_by_their_setup_and_whether_they_have_an_answer(store: Store) -> None:
    mark = UNFINISHED.fingerprint
    store.put(unfinished("new", started_at="2026-11-21T12:00:00Z"))
    store.put(unfinished("old"))
    store.put(unfinished("elsewhere", fingerprint="x"))

    def ids(**given: Any) -> list[str]:
        return [campaign.id for campaign in store.campaigns(**given)]

    assert ids(fingerprint=mark, finished=False) == ["old", "new"]
    store.finish_campaign("new", BOUNDARY, "2026-11-21T13:00:00Z")
    assert ids(fingerprint=mark, finished=False) == ["old"]
    assert ids(fingerprint=mark, finished=True) == ["new"]
    assert ids(fingerprint="y") == []
    assert ids(newest=2) == ["old", "new"]


def test_campaigns_that_could_not_measure_a_candidate_are_found(store: Store) -> None:
    prove_campaigns_that_could_not_measure_are_found(store)


def test_a_campaign_is_answered_once(store: Store) -> None:
    store.put(unfinished("c"))
    assert store.campaigns(finished=True) == []
    store.finish_campaign("c", BOUNDARY, "2026-11-21T13:00:00Z")
    store.finish_campaign("c", BOUNDARY, "2026-11-21T13:00:00Z")
    answered = unfinished("c", boundary=BOUNDARY, finished_at="2026-11-21T13:00:00Z")
    assert store.campaign("c") == answered
    assert store.campaigns(finished=False) == []
    with pytest.raises(StoreError, match="was already answered at 2026-11-21T13:00:00Z"):
        store.finish_campaign("c", BOUNDARY, "2026-11-21T14:00:00Z")
    assert not store.put(unfinished("c"))
    assert store.campaign("c") == answered


def test_the_beginning_of_an_id_is_enough_where_it_is_the_only_one(store: Store) -> None:
    for each in ("abc", "abcd", "b-1"):
        store.put(unfinished(each))
    assert [store.whole_id(each) for each in ("b", "abcd", "abc", "x")] == [
        "b-1",
        "abcd",
        "abc",
        "x",
    ]
    with pytest.raises(UsageError, match=r"2 ids in .* begin with 'ab'"):
        store.whole_id("ab")


def test_the_beginning_of_a_samples_id_is_enough_where_samples_are_asked_for(store: Store) -> None:
    store.put(sample("s-1234"))
    assert store.whole_id("s-12", samples=True) == "s-1234"
    assert store.whole_id("s-12") == "s-12"


def test_an_unknown_campaign_cannot_be_answered(store: Store) -> None:
    with pytest.raises(StoreError, match="has no campaign 'c-404'"):
        store.finish_campaign("c-404", BOUNDARY, "2026-11-21T13:00:00Z")


def test_the_newest_manifest_of_an_image_counts_and_the_old_one_stays(store: Store) -> None:
    assert store.image(IMAGE.key) is None
    assert store.put(IMAGE)
    assert not store.put(IMAGE)
    drifted = IMAGE.model_copy(update={"packages": {"389-ds-base": "2.3.2"}})
    assert store.put(drifted)
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
        assert store.put(each)
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
        store.put(each)
    assert [each.state for each in store.planned_turns()] == [TurnState.PLANNED]
    store.put(unfinished("there"))
    assert store.campaigns_there({"there", "not there"}) == {"there"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("id = 'x'", "its id is 'c' in its body, 'x' in the table"),
        ("of = 'x'", "its of is "),
        ("state = 'answered'", "its state is 'open' in its body, 'answered' in the table"),
        ("time_us = 7", "its time_us is "),
    ],
)
def test_a_document_whose_columns_say_something_else_than_its_body_is_left_out(
    store: Store, change: str, said: str
) -> None:
    store.put(unfinished("c"))
    store.database.tell = (told := list[str]()).append
    with store.database.writing() as connection:
        connection.execute(text(f"UPDATE documents SET {change}"))
    assert store.campaigns() == []
    assert said in told[0]


def test_kinds_of_documents_have_ids_of_their_own(store: Store) -> None:
    machine = FleetMachine(id="c", name="lab-1", class_name="k", since="2026-11-29")
    assert store.put(unfinished("c"))
    assert store.put(machine)
    assert (store.get(FleetMachine, "c"), store.get(Campaign, "c")) == (machine, unfinished("c"))
    assert store.find(FleetMachine, of=("lab-1",)) == [machine]
    assert store.find(FleetMachine, of=("lab-2",)) == []
