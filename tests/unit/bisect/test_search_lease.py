"""One search has one process, and a dead process has none."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from leasing_labs import (
    QUESTION,
    Benches,
    prove_an_answer_is_never_rewritten,
    prove_one_process_at_a_time,
    search,
)
from observers import RecordingObserver
from worlds import TEN_RUNS

from dsharness.containers.ownership import lives, owner_tag
from dsharness.errors import BusyError
from dsharness.model import LdcltWorkload
from dslab.campaign_loop import CampaignOrder, leased
from dsresults.store import Store
from dsresults.store.leases import STALE_S, this_process
from dssearch.bayes.bayes_search import Bayes

ME = this_process()
GONE = replace(ME, owner="1@gone")
ELSEWHERE = replace(ME, place="another machine", owner="7@8", host="other")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.mark.whole
def test_two_processes_on_one_file(place: Path) -> None:
    prove_one_process_at_a_time(place)


def test_an_answer_is_given_once(place: Path) -> None:
    prove_an_answer_is_never_rewritten(place)


def test_who_has_it_is_told_until_it_is_let_go(place: Path) -> None:
    other = replace(ME, owner=owner_tag(os.getppid()))
    with Store.open(place) as store:
        assert store.take_lease("q", other) is None
        assert store.take_lease("q", ME) == other
        assert store.take_lease("another question", ME) is None
        with pytest.raises(BusyError, match=f"process {os.getppid()} on ") as caught:
            search_leased(store)
        assert (caught.value.exit_code, "continues from its samples" in caught.value.hint) == (
            18,
            True,
        )
        store.release_lease("q", ME)  # another's stays
        assert store.take_lease("q", ME) == other
        store.release_lease("q", other)
        assert store.take_lease("q", ME) is None


def search_leased(store: Store) -> None:
    with leased(store, "q", "w on a to c"):
        raise AssertionError("it was not ours")


@pytest.mark.parametrize(
    ("holder", "silent_s", "gone"),
    [
        (ME, 10 * STALE_S, False),  # it may be stopped; its process is there
        (GONE, 0, True),
        (ELSEWHERE, STALE_S - 1, False),
        (ELSEWHERE, STALE_S + 1, True),
    ],
)
def test_gone_is_what_is_dead_here_or_silent_elsewhere(holder, silent_s, gone) -> None:
    assert holder.gone(silent_s, ME.place) is gone


def test_silence_elsewhere_frees_a_lease_and_its_old_holder_hears(place: Path, monkeypatch) -> None:
    with Store.open(place) as store:
        with leased(store, "q", "w", every_s=0.01) as lease:
            assert store.take_lease("q", ELSEWHERE) is not None
            monkeypatch.setattr("dsresults.store.leases.STALE_S", -1.0)
            assert store.take_lease("q", ELSEWHERE) is None
            assert lease.lost.wait(10)
            with pytest.raises(BusyError, match="has taken over"):
                lease.check()
        assert store.renew_lease("q", ELSEWHERE)  # leaving took nothing from it


def test_a_lease_is_kept_alive_while_the_main_thread_waits(place: Path) -> None:
    with Store.open(place) as store, leased(store, "q", "w", every_s=0.01):
        first = beats(store)
        deadline = time.monotonic() + 10
        while beats(store) == first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert beats(store) > first


def beats(store: Store) -> int:
    database = store._database
    with database.reading() as connection:
        return connection.exec_driver_sql("SELECT beat_us FROM leases").scalar_one()


def test_an_interrupted_search_lets_go(place: Path) -> None:
    class Stopped(Benches):
        def take(self, turn):
            raise KeyboardInterrupt

    with Store.open(place) as store:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                CampaignOrder(
                    question=QUESTION,
                    workload=LdcltWorkload(id="w", title="binds"),
                    search=Bayes(),
                    lab=Stopped(0),
                    store=store,
                ).run(RecordingObserver())
        assert search(store, 0, RecordingObserver()).boundary is not None
    assert [each.name for each in threading.enumerate() if each.name == "lease"] == []


class Rebuilt(Benches):
    """Candidates whose images are made again between two runs."""

    image = "first"
    left = 5

    def take(self, turn):
        for taken in super().take(turn):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            yield taken.model_copy(update={"image_key": self.image})


def test_samples_of_two_images_of_a_candidate_are_never_used_together(place: Path) -> None:
    def run(benches: Benches) -> None:
        CampaignOrder(
            question=QUESTION,
            workload=LdcltWorkload(id="w", title="binds"),
            search=TEN_RUNS,
            lab=benches,
            store=store,
        ).run(RecordingObserver())

    with Store.open(place) as store:
        with pytest.raises(KeyboardInterrupt):
            run(Rebuilt(0))
        again = Rebuilt(0)
        again.image, again.left = "second", 1000
        run(again)
        image = {each.id: each.image_key for each in store.samples()}
        assert list(image.values()).count("first") == 5
        used = [
            {image[id_] for id_ in one.samples} for one in store.campaigns()[0].boundary.verdicts
        ]
        assert {"second"} in used
        assert {"first", "second"} not in used


@pytest.mark.parametrize(("error", "alive"), [(PermissionError, True), (ProcessLookupError, False)])
def test_another_users_process_is_alive_although_proc_hides_it(monkeypatch, error, alive) -> None:
    def kill(_pid: int, _sign: int) -> None:
        raise error

    monkeypatch.setattr("dsharness.containers.ownership.os.kill", kill)
    assert lives(f"{2**30}@123") is alive
