"""The store: whatever it is given is written at once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from dsharness.model import Boundary, Campaign, Finding, Image, Sample, Turn
from dsresults.store.claims import Holder, beat, release, take
from dsresults.store.database import LOCK_WAIT_S, Database
from dsresults.store.json_lines import Imported, read_lines, write_lines
from dsresults.store.location import locate, ready_file
from dsresults.store.records import (
    answer_campaign,
    count_samples,
    find_campaigns,
    find_findings,
    find_images,
    find_samples,
    find_turns,
    put_campaign,
    put_finding,
    put_image,
    put_sample,
    put_turn,
    settle_turns,
)
from dsresults.store.schema import prepare


class Store:
    """Campaigns, samples and image manifests in SQLite or PostgreSQL; safe for many processes.

    Every method is one transaction: when it returns, the data survives a kill or a crash.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(
        cls,
        url: str | Path | None = None,
        *,
        create: bool = True,
        folder: bool = True,
        lock_wait_s: float = LOCK_WAIT_S,
    ) -> Self:
        """Open by path or URL (None: the default place), bringing the schema up to date.

        Without ``folder`` the default place is not in the working directory.
        """
        location = locate(url, folder=folder)
        if location.file is not None:
            ready_file(location.file, create=create, make_folder=not url)
        database = Database(location, lock_wait_s=lock_wait_s)
        prepare(database)
        return cls(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._database.location)

    def close(self) -> None:
        self._database.engine.dispose()

    def add_campaign(self, campaign: Campaign) -> bool:
        """Keep a campaign; False if it exists already, StoreError if it differs."""
        with self._database.writing() as connection:
            return put_campaign(self._database, connection, campaign)

    def finish_campaign(self, campaign_id: str, boundary: Boundary, finished_at: str) -> None:
        """Give a campaign its answer, once."""
        with self._database.writing() as connection:
            answer_campaign(self._database, connection, campaign_id, boundary, finished_at)

    def claim(self, key: str, me: Holder) -> Holder | None:
        """Claim a search: None on success, else the process that has it."""
        with self._database.writing() as connection:
            return take(self._database, connection, key, me)

    def beat(self, key: str, me: Holder) -> bool:
        """Renew a claim; False if another process has taken it."""
        with self._database.writing() as connection:
            return beat(self._database, connection, key, me)

    def release(self, key: str, me: Holder) -> None:
        """Release a claim; another process's claim is kept."""
        with self._database.writing() as connection:
            release(connection, key, me)

    def add_sample(self, sample: Sample) -> bool:
        """Keep a sample; False if it exists already, StoreError if it differs."""
        with self._database.writing() as connection:
            return put_sample(self._database, connection, sample)

    def put_turn(self, turn: Turn) -> bool:
        """Keep a turn, or how a planned one ended; False if it exists already."""
        with self._database.writing() as connection:
            return put_turn(self._database, connection, turn)

    def settle_turns(self, campaign_id: str) -> None:
        """End the turns that were begun: done with a sample of each candidate, else given up."""
        with self._database.writing() as connection:
            settle_turns(connection, campaign_id)

    def turns(self, campaign_id: str) -> list[Turn]:
        """A campaign's turns with all their attempts, in order."""
        return find_turns(self._database, campaign_id)

    def add_finding(self, finding: Finding) -> bool:
        """Keep a finding; False if it exists already, StoreError if it differs."""
        with self._database.writing() as connection:
            return put_finding(self._database, connection, finding)

    def findings(self) -> list[Finding]:
        """All of them, in time order."""
        return find_findings(self._database, {})

    def finding(self, finding_id: str) -> Finding | None:
        return next(iter(find_findings(self._database, {"id": finding_id})), None)

    def add_image(self, image: Image) -> bool:
        """Keep an image's manifest; an earlier one of the same key is kept too."""
        now = datetime.now(UTC).isoformat()
        with self._database.writing() as connection:
            return put_image(self._database, connection, image, added_at=now)

    def samples(
        self,
        *,
        campaign_id: str | None = None,
        candidate_id: str | None = None,
        workload_id: str | None = None,
        settings_id: str | None = None,
        image_key: str | None = None,
    ) -> list[Sample]:
        """The samples that match everything given, in time order; what was given up is left out."""
        given = {
            "campaign_id": campaign_id,
            "candidate_id": candidate_id,
            "workload_id": workload_id,
            "settings_id": settings_id,
            "image_key": image_key,
        }
        return find_samples(self._database, given)

    def measured_in(self, campaigns: Iterable[Campaign]) -> tuple[list[Sample], dict[str, Image]]:
        """The samples of these, campaign after campaign, and their images by key."""
        samples = [each for one in campaigns for each in self.samples(campaign_id=one.id)]
        keys = dict.fromkeys(sample.image_key for sample in samples)
        return samples, {key: image for key in keys if (image := self.image(key)) is not None}

    def sample(self, sample_id: str) -> Sample | None:
        return next(iter(find_samples(self._database, {"id": sample_id})), None)

    def sample_counts(self) -> dict[str, int]:
        """Campaign id -> number of its samples, valid or not."""
        return count_samples(self._database)

    def campaigns(
        self,
        *,
        series_id: str | None = None,
        workload_id: str | None = None,
        settings_id: str | None = None,
        finished: bool | None = None,
    ) -> list[Campaign]:
        """The campaigns that match everything given, in time order."""
        given = {"series_id": series_id, "workload_id": workload_id, "settings_id": settings_id}
        return find_campaigns(self._database, given, finished=finished)

    def campaign(self, campaign_id: str) -> Campaign | None:
        return next(iter(find_campaigns(self._database, {"id": campaign_id})), None)

    def unfinished_campaign(
        self, *, kind: str, series_id: str, workload_id: str, settings_id: str, fingerprint: str
    ) -> Campaign | None:
        """The newest campaign to resume: the same question in the same environment."""
        given = {
            "kind": kind,
            "series_id": series_id,
            "workload_id": workload_id,
            "settings_id": settings_id,
            "fingerprint": fingerprint,
        }
        found = find_campaigns(self._database, given, finished=False)
        return found[-1] if found else None

    def image(self, key: str) -> Image | None:
        """The newest manifest of an image."""
        found = find_images(self._database, {"key": key})
        return found[-1] if found else None

    def export_jsonl(self, stream: TextIO) -> int:
        """Write everything as JSON lines; return the number of records."""
        return write_lines(self._database, stream)

    def import_jsonl(self, lines: Iterable[str], *, source: str = "input") -> Imported:
        """Add the contents of an export: everything, or nothing and an error naming the line."""
        return read_lines(self._database, lines, source=source)
