"""Labs as processes of their own, at one question in one store."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from forks import Fork, forked
from measured import own
from observers import RecordingObserver
from store_values import sample
from worlds import World

from dsharness.errors import BusyError, StoreError
from dsharness.model import (
    Boundary,
    Campaign,
    LdcltWorkload,
    Machine,
    Procedure,
    Sample,
    Setup,
    Starts,
    Turn,
)
from dslab.campaign_loop import CampaignOrder
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes
from dssearch.question import Question

QUESTION = Question(series_id="s", line=("a", "b", "c"), workload_id="w", settings_id="default")
WORLD = World({"a": 1, "b": 1, "c": 20})


class Benches:
    """Serves a made-up world, slowly."""

    def __init__(self, each_s: float) -> None:
        self.each_s = each_s
        self.identities: Mapping[str, str] = {}
        self.unmeasurable: Mapping[str, str] = {}
        self.setup = Setup(machine=Machine(id="one"), procedure=Procedure(version=1))

    def prepare_more(self, candidates: Sequence[str], starts: Starts = "kept") -> None: ...

    def ready(self, candidate: str) -> None:
        """Everything is, here."""

    def take(self, turn: Turn) -> Iterator[Sample]:
        for candidate in turn.candidates:
            time.sleep(self.each_s)
            yield own(WORLD.sample(candidate, turn.number), turn)


@dataclass
class WritingObserver(RecordingObserver):
    """Writes what happens, by name, as it happens."""

    lines: TextIO = sys.stdout

    def _record(self, *facts: object) -> None:
        self.lines.write(f"{facts[0]}\n")
        self.lines.flush()


def search(store: Store, each_s: float, observer: RecordingObserver) -> Campaign:
    return CampaignOrder(
        question=QUESTION,
        workload=LdcltWorkload(id="w", title="binds"),
        search=Bayes(),
        lab=Benches(each_s),
        store=store,
    ).run(observer)


def lab(url: str | Path, each_s: float) -> AbstractContextManager[Fork]:
    """The same search as a process; it ends with 18 when another is at it."""

    def work(lines: TextIO) -> int:
        try:
            with Store.open(url) as store:
                search(store, each_s, WritingObserver(lines=lines))
        except BusyError as error:
            lines.write(str(error))
            return error.exit_code
        return 0

    return forked(work)


def prove_one_process_at_a_time(url: str | Path) -> None:
    """The second learns who has it; when that one is killed, the next continues at once."""
    with lab(url, 0.3) as first:
        assert "sampled" in (line.strip() for line in first.lines)
        with lab(url, 0.0) as second:
            text, code = second.lines.read(), second.wait()
        assert (code, f"process {first.pid} on " in text) == (18, True), text
        first.kill()
    with Store.open(url) as store:
        before = len(store.samples())
        campaign = search(store, 0.0, RecordingObserver())
        taken = store.samples(campaign_id=campaign.id)
        turns = [(each.candidate_id, each.turn) for each in taken]
        assert campaign.boundary is not None
        assert campaign.boundary.after == "c"
        assert 1 <= before < len(taken) == len(store.samples())
        # What was half measured when it was killed may be measured once more, and nothing else.
        assert len(turns) - len(set(turns)) <= 1
        assert len(store.campaigns()) == 1


def prove_an_answer_is_never_rewritten(url: str | Path) -> None:
    """Of many that answer one campaign at once, one is right and the others hear of it."""
    campaign = Campaign(
        id="asked", series_id="s", workload_id="w", settings_id="default",
        started_at="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    outcomes: list[str] = []
    start = threading.Barrier(4)
    with Store.open(url) as store:
        store.put(campaign)
        store.put(sample("x"))

        def answer(name: str) -> None:
            start.wait()
            try:
                store.finish_campaign("asked", boundary(name), "2026-01-02T00:00:00+00:00")
            except StoreError:
                outcomes.append("refused")
            else:
                outcomes.append(name)

        threads = [threading.Thread(target=answer, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [right] = [name for name in outcomes if name != "refused"]
        kept = store.campaign("asked")
        assert kept is not None
        assert kept.boundary == boundary(right)


def boundary(name: str) -> Boundary:
    return Boundary(
        series_id="s", workload_id="w", settings_id="default", before=None, after=name, found=False,
        direction="none", summary=name,
    )  # fmt: skip
