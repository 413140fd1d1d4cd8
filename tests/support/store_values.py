"""Values to store, laws that hold on any database, and a process that writes to one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from forks import Fork, forked

from dsharness.errors import DiskFullError
from dsharness.model import Boundary, Campaign, Image, Sample
from dsresults.store import Store
from dsresults.store.json_lines import RECORD, CampaignRecord, ImageRecord, SampleRecord

EXPORT = Path(__file__).parents[1] / "golden" / "store-export.jsonl"
RECORDS = [RECORD.validate_json(line) for line in EXPORT.read_text("utf-8").splitlines()]
SAMPLES = [record.value for record in RECORDS if isinstance(record, SampleRecord)]
CAMPAIGNS = [record.value for record in RECORDS if isinstance(record, CampaignRecord)]
IMAGE: Image = next(record.value for record in RECORDS if isinstance(record, ImageRecord))
FINISHED: Campaign = CAMPAIGNS[0]
UNFINISHED: Campaign = CAMPAIGNS[1]
BOUNDARY: Boundary = FINISHED.boundary or Boundary.model_construct()


def sample(identity: str, **changes: object) -> Sample:
    return Sample.model_validate({**SAMPLES[0].model_dump(), "id": identity, **changes})


@contextmanager
def writer(url: str | Path, prefix: str, count: int) -> Iterator[Fork]:
    """Another process that stores ``count`` samples, and names each once it is kept."""
    with forked(lambda lines: _write(str(url), prefix, count, lines)) as process:
        yield process


def prove_writers_lose_nothing(url: str | Path, *, writers: int = 4, each: int = 25) -> None:
    """Several processes open a database that is not there yet, all at once, and write."""
    prefixes = [f"w{number}-" for number in range(writers)]
    with (
        writer(url, prefixes[0], each) as first,
        writer(url, prefixes[1], each) as second,
        writer(url, prefixes[2], each) as third,
        writer(url, prefixes[3], each) as fourth,
    ):
        assert [process.wait() for process in (first, second, third, fourth)] == [0] * 4
    with Store.open(url) as store:
        kept = {one.id for one in store.samples()}
    assert kept == {f"{prefix}{number}" for prefix in prefixes for number in range(each)}


def prove_kill_keeps_what_was_stored(url: str | Path) -> None:
    """Kill -9 between or within writes: every id printed before is there, and writing continues."""
    with writer(url, "k-", 100_000) as process:
        told = [process.lines.readline().strip() for _ in range(20)]
        process.kill()
        told += process.lines.read().split("\n")[:-1]
    with Store.open(url) as store:
        kept = {one.id for one in store.samples()}
        assert set(told) <= kept
        assert len(kept) - len(told) <= 1  # stored, and killed before it could be printed
        assert store.put(sample("after"))


ODD_NAMES = ("c%", "c_", 'say "c"', "c\\", "é", "c:1", "{c}", "c")


def prove_campaigns_that_could_not_measure_are_found(store: Store) -> None:
    """Whatever a candidate is called; one that is only named in the answer does not count."""
    for number, name in enumerate(ODD_NAMES):
        unmeasured = BOUNDARY.model_copy(
            update={"unmeasured": {name: "no image"}, "chances": dict.fromkeys(ODD_NAMES, 0.1)}
        )
        campaign = UNFINISHED.model_copy(update={"id": str(number)})
        store.put(campaign)
        store.finish_campaign(campaign.id, unmeasured, "2026-11-21T13:00:00Z")
    store.put(UNFINISHED.model_copy(update={"id": "open"}))
    for number, name in enumerate(ODD_NAMES):
        assert [each.id for each in store.campaigns_without(name)] == [str(number)]


def fill(store: Store) -> int:
    """Store until the disk is full; the number of samples that were kept."""
    for number in range(10_000):
        try:
            store.put(sample(str(number), log=os.urandom(20_000).hex()))
        except DiskFullError as error:
            if "no space left for the results database" in error.message:
                return number
            raise
    raise AssertionError("the disk never filled")


def _write(url: str, prefix: str, count: int, lines: TextIO) -> int:
    with Store.open(url) as store:
        for number in range(count):
            store.put(sample(f"{prefix}{number}"))
            lines.write(f"{prefix}{number}\n")
            lines.flush()
    return 0
