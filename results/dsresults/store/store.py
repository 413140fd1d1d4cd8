"""The store: whatever it is given is written at once.

A database is brought to the schema of this version when it is opened, safely when several processes
open it first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, TypeVar

from dsharness.errors import UsageError
from dsharness.model import Boundary, Campaign, Finding, Image, Sample, Turn, Value
from dsharness.model.campaign import FindingKind, finding_id
from dsresults.store.database import LOCK_WAIT_S, Database
from dsresults.store.documents import (
    ANSWERED,
    OPEN,
    answer_campaign,
    could_not_measure,
    document_ids,
    find_documents,
    get_document,
    get_documents,
)
from dsresults.store.json_lines import Imported, read_lines, write_lines
from dsresults.store.leases import Holder, release, renew, take
from dsresults.store.location import locate, ready_file
from dsresults.store.records import (
    count_samples,
    find_planned_turns,
    find_samples,
    find_turns,
    put,
    sample_ids,
    settle_turns,
)
from dsresults.store.schema import prepare
from dsresults.store.tables import DOCUMENTS

V = TypeVar("V", bound=Value)


class Store:
    """Samples, turns and documents in SQLite or PostgreSQL; safe for many processes.

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
        lock_wait_s: float = LOCK_WAIT_S,
    ) -> Self:
        """Open by path or URL (None: the default place), bringing the schema up to date."""
        location = locate(url)
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

    @property
    def database(self) -> Database:
        """For those who write more in one transaction than a method here does."""
        return self._database

    def close(self) -> None:
        self._database.engine.dispose()

    def put(self, value: Value) -> bool:
        """Keep a value of any kind; False if it exists already, StoreError if it differs.

        What was planned or asked may have ended since.
        """
        with self._database.writing() as connection:
            return put(connection, value)

    def find(
        self,
        kind: type[V],
        *,
        of: Collection[str] = (),
        state: str | None = None,
        newest: int | None = None,
    ) -> list[V]:
        """The documents that fit all that is given, in time order; or so many of the newest."""
        with self._database.looking() as connection:
            return find_documents(
                self._database, connection, kind, of=of, state=state, newest=newest
            )

    def get(self, kind: type[V], identity: str) -> V | None:
        """The document with that id; UnreadableError if this version cannot read it."""
        with self._database.looking() as connection:
            return get_document(connection, kind, identity)

    def get_all(self, kind: type[V], ids: Collection[str]) -> list[V]:
        """Those documents with these ids that there are, in time order."""
        with self._database.looking() as connection:
            return get_documents(connection, kind, ids)

    def finish_campaign(self, campaign_id: str, boundary: Boundary, finished_at: str) -> None:
        """Give a campaign its answer, once."""
        with self._database.writing() as connection:
            answer_campaign(self._database, connection, campaign_id, boundary, finished_at)

    def take_lease(self, key: str, me: Holder) -> Holder | None:
        """Take a search or a machine: None on success, else the process that has it."""
        with self._database.writing() as connection:
            return take(connection, key, me)

    def renew_lease(self, key: str, me: Holder) -> bool:
        """Renew a lease; False if another process has taken it."""
        with self._database.writing() as connection:
            return renew(connection, key, me)

    def release_lease(self, key: str, me: Holder) -> None:
        """Release a lease; another process's is kept."""
        with self._database.writing() as connection:
            release(connection, key, me)

    def settle_turns(self, campaign_id: str, machines: Collection[str] | None) -> int:
        """End what these machines began, or all: done if all was measured, else given up."""
        with self._database.writing() as connection:
            return settle_turns(self._database, connection, campaign_id, machines)

    def turn(self, turn_id: str) -> Turn | None:
        return next(iter(find_turns(self._database, {"id": turn_id})), None)

    def turns(self, campaign_id: str) -> list[Turn]:
        """A campaign's turns with all their attempts, in order."""
        return find_turns(self._database, {"campaign_id": campaign_id})

    def planned_turns(self) -> list[Turn]:
        """Turns of any campaign that somebody is to take, or takes."""
        return find_planned_turns(self._database)

    def finding(self, identity: str) -> Finding | None:
        return self.get(Finding, identity)

    def findings(self, *kinds: FindingKind, newest: int | None = None) -> list[Finding]:
        """Those of these kinds, or all, in time order; so many of the newest if that is given."""
        return self.find(Finding, of=kinds, newest=newest)

    def findings_on(self, kind: FindingKind, campaigns: Iterable[str]) -> list[Finding]:
        """Those of a kind that rest on one of these campaigns alone."""
        return self.get_all(Finding, [finding_id(kind, campaign) for campaign in campaigns])

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
        samples = [sample for run in campaigns for sample in self.samples(campaign_id=run.id)]
        keys = dict.fromkeys(sample.image_key for sample in samples)
        newest = {image.key: image for image in self.find(Image, of=keys)} if keys else {}
        return samples, {key: newest[key] for key in keys if key in newest}

    def sample(self, sample_id: str) -> Sample | None:
        return next(iter(find_samples(self._database, {"id": sample_id})), None)

    def sample_counts(self) -> dict[str, int]:
        """Campaign id -> number of its samples, valid or not."""
        return count_samples(self._database)

    def campaign(self, campaign_id: str) -> Campaign | None:
        return self.get(Campaign, campaign_id)

    def campaigns(
        self,
        *,
        fingerprint: str | None = None,
        finished: bool | None = None,
        newest: int | None = None,
    ) -> list[Campaign]:
        """The campaigns that match everything given, in time order; or the newest of them."""
        of = () if fingerprint is None else (fingerprint,)
        state = None if finished is None else ANSWERED if finished else OPEN
        return self.find(Campaign, of=of, state=state, newest=newest)

    def campaigns_without(self, candidate: str) -> list[Campaign]:
        """Campaigns that could not measure a candidate, in time order.

        Only these are read whole: of the others the database looks at what they refused.
        """
        named = could_not_measure(candidate)
        with self._database.looking() as connection:
            campaigns = find_documents(self._database, connection, Campaign, where=[named])
        return [
            campaign
            for campaign in campaigns
            if campaign.boundary and candidate in campaign.boundary.unmeasured
        ]

    def campaigns_there(self, ids: Collection[str]) -> set[str]:
        """Which of these ids are campaigns."""
        with self._database.looking() as connection:
            return document_ids(connection, [Campaign], DOCUMENTS.c.id.in_(ids))

    def whole_id(self, start: str, *, samples: bool = False) -> str:
        """The id of the one campaign or finding that begins so; the text itself if none does.

        With ``samples`` one of them may be meant too.
        """
        begins_so = DOCUMENTS.c.id.startswith(start, autoescape=True)
        with self._database.looking() as connection:
            ids = document_ids(connection, [Campaign, Finding], begins_so)
            if samples:
                ids |= sample_ids(connection, start)
        same_case = sorted(identity for identity in ids if identity.startswith(start))
        if start in same_case or not same_case:
            return start
        if len(same_case) > 1:
            raise UsageError(
                f"{len(same_case)} ids in {self} begin with {start!r}",
                hint=f"more of it: {same_case[0]} and {same_case[1]} are two of them",
            )
        return same_case[0]

    def image(self, key: str) -> Image | None:
        """The newest manifest of an image."""
        return next(iter(self.find(Image, of=(key,), newest=1)), None)

    def images_of(self, candidate_id: str) -> list[Image]:
        """Every manifest of a candidate, the newest last."""
        of_it = DOCUMENTS.c.body["candidate_id"].as_string() == candidate_id
        with self._database.looking() as connection:
            return find_documents(self._database, connection, Image, where=[of_it])

    def export_jsonl(self, stream: TextIO) -> int:
        """Write everything as JSON lines; return the number of records."""
        return write_lines(self._database, stream)

    def import_jsonl(
        self,
        lines: Iterable[str],
        *,
        source: str = "input",
        check: Callable[[Finding], object] = id,
    ) -> Imported:
        """Add the contents of an export: everything, or nothing and an error naming the line.

        ``check`` raises for a finding that its kind cannot be made of.
        """
        return read_lines(self._database, lines, source=source, check=check)
