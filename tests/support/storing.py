"""Values to store, laws that hold on any database, and a process that writes to one.

As a program: `storing.py URL PREFIX COUNT` stores samples and prints each id once it is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
def writer(url: str | Path, prefix: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that stores ``count`` samples; ended, whatever happens."""
    command = [sys.executable, __file__, str(url), prefix, str(count)]
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def prove_writers_lose_nothing(url: str | Path, *, writers: int = 4, each: int = 25) -> None:
    """Several processes open a database that is not there yet, all at once, and write."""
    prefixes = [f"w{number}-" for number in range(writers)]
    with (
        writer(url, prefixes[0], each) as first,
        writer(url, prefixes[1], each) as second,
        writer(url, prefixes[2], each) as third,
        writer(url, prefixes[3], each) as fourth,
    ):
        for process in (first, second, third, fourth):
            _, complaint = process.communicate(timeout=120)
            assert (process.returncode, complaint) == (0, "")
    with Store.open(url) as store:
        kept = {one.id for one in store.samples()}
    assert kept == {f"{prefix}{number}" for prefix in prefixes for number in range(each)}


def prove_kill_keeps_what_was_stored(url: str | Path) -> None:
    """Kill -9 between or within writes: every id printed before is there, and writing continues."""
    with writer(url, "k-", 100_000) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(20)]
        process.kill()
        told += process.stdout.read().split("\n")[:-1]
    with Store.open(url) as store:
        kept = {one.id for one in store.samples()}
        assert set(told) <= kept
        assert len(kept) - len(told) <= 1  # stored, and killed before it could be printed
        assert store.add_sample(sample("after"))


def fill(store: Store) -> int:
    """Store until the disk is full; the number of samples that were kept."""
    for number in range(10_000):
        try:
            store.add_sample(sample(str(number), log=os.urandom(20_000).hex()))
        except DiskFullError as error:
            if "no space left for the results database" in error.message:
                return number
            raise
    raise AssertionError("the disk never filled")


def _write(url: str, prefix: str, count: int) -> None:
    with Store.open(url) as store:
        for number in range(count):
            store.add_sample(sample(f"{prefix}{number}"))
            sys.stdout.write(f"{prefix}{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _write(sys.argv[1], sys.argv[2], int(sys.argv[3]))
