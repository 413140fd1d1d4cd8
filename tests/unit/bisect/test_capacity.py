"""A rate as a share of what the slower end answers: measured once, told, and refused elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from measured import WorldBenches
from observers import RecordingObserver
from shipped import MATRIX
from worlds import World

from dsbisect.capacity import CAPACITY_RUNS, at_shares, without_shares
from dsbisect.open_campaigns import OpenCampaigns
from dsharness.errors import UsageError
from dsharness.matrix import find_workload
from dsharness.measure.metrics import LATENCY_P99, METRICS, refuse_unfit
from dsharness.model import LdaploadWorkload
from dslab.lab_conditions import refuse_shares
from dsresults.store import Store

PLAIN = find_workload(MATRIX, "search-as-user")
assert isinstance(PLAIN, LdaploadWorkload)
SHARED = PLAIN.model_copy(update={"scheduled_pct": 60.0})
WORLD = World({"a": 1, "b": 1, "c": 4}, noise=0.0)  # 1,000, 1,000 and 250 a second


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def campaigns(store: Store, benches: WorldBenches, observer: RecordingObserver) -> OpenCampaigns:
    return OpenCampaigns(
        settings="default", metric=LATENCY_P99.name, kind="levels", lab=benches, store=store,
        observer=observer,
    )  # fmt: skip


def test_the_rate_is_a_share_of_what_the_slower_end_answers(store: Store) -> None:
    benches, observer = WorldBenches(WORLD), RecordingObserver()
    found = at_shares((PLAIN, SHARED), ("a", "c"), campaigns(store, benches, observer))
    assert found[0] == PLAIN
    assert (found[1].rate, found[1].share_pct) == (150, None)
    assert found[1].id == PLAIN.id
    assert found[1].threads >= PLAIN.threads
    assert benches.taken == 2 * CAPACITY_RUNS
    said = [words for name, *words in observer.records if name == "preparing"]
    assert said == [
        ["c", "answers 250/s of search-as-user in a closed loop; 60 % of that is 150/s"]
    ]


def test_a_run_that_continues_measures_nothing_again_and_has_the_same_rate(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt):
        at_shares(
            (SHARED,),
            ("a", "c"),
            campaigns(store, WorldBenches(WORLD, stop_after=3), RecordingObserver()),
        )
    benches = WorldBenches(WORLD)
    (first,) = at_shares((SHARED,), ("a", "c"), campaigns(store, benches, RecordingObserver()))
    assert 2 * CAPACITY_RUNS - 3 <= benches.taken <= 2 * CAPACITY_RUNS - 2
    slower = WorldBenches(World({"a": 2, "c": 8}, noise=0.0))
    (again,) = at_shares((SHARED,), ("a", "c"), campaigns(store, slower, RecordingObserver()))
    assert slower.taken == 0
    assert again == first


def test_the_lab_is_prepared_for_a_closed_loop() -> None:
    plain, closed = without_shares((PLAIN, SHARED), LATENCY_P99.name)
    assert plain == PLAIN
    assert (closed.id, closed.rate, closed.share_pct) == ("search-as-user-closed", None, None)
    assert closed.content == SHARED.content


def test_it_is_a_schedule_for_metrics_and_other_commands_refuse_it() -> None:
    with pytest.raises(UsageError, match="its operations begin by a schedule"):
        refuse_unfit(METRICS["rate"], (SHARED,))
    with pytest.raises(UsageError, match="has `scheduled_pct: 60`"):
        refuse_shares((SHARED,))
    refuse_shares((PLAIN,))


@pytest.mark.parametrize(
    ("also", "refused"),
    [({"scheduled": 5.0}, "scheduled_pct"), ({"pauses_ms": (1.0,)}, "pauses_ms"), ({}, None)],
)
def test_it_stands_alone(also: dict[str, object], refused: str | None) -> None:
    found = [name for name, _ in SHARED.model_copy(update=also).contradictions()]
    assert found == ([refused] if refused else [])


def test_a_workload_without_it_is_stored_as_before() -> None:
    assert "scheduled_pct" not in PLAIN.model_dump()
    assert LdaploadWorkload.model_validate(SHARED.model_dump()) == SHARED
