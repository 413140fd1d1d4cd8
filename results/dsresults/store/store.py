"""The store: whatever it is given is written at once.

A database is brought to the schema of this version when it is opened, safely when several processes
open it first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from dsharness.errors import StoreError, UsageError
from dsharness.model import Boundary, Campaign, Finding, Image, Sample, Turn, TurnState
from dsharness.model.campaign import FindingKind, finding_id
from dsharness.process.deadline import Deadline
from dsresults.store.claims import Holder, beat, release, take
from dsresults.store.database import (
    ELSEWHERE,
    LOCK_WAIT_S,
    VERSION_TABLE,
    Database,
    revision,
    translated,
)
from dsresults.store.json_lines import Imported, read_lines, write_lines
from dsresults.store.location import locate, ready_file
from dsresults.store.records import (
    answer_campaign,
    count_samples,
    find_campaign_ids,
    find_campaigns,
    find_campaigns_without,
    find_findings,
    find_images,
    find_planned_turns,
    find_samples,
    find_turn_state,
    find_turns,
    ids_from,
    put_campaign,
    put_finding,
    put_image,
    put_sample,
    put_turn,
    settle_turns,
)
from dsresults.store.tables import METADATA

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

SCRIPTS = Path(__file__).with_name("migrations")
ADVISORY_LOCK = 0x6473_6269_7365_6374  # "dsbisect" in ASCII: one key for every process


def prepare(database: Database, *, scripts: Path = SCRIPTS) -> None:
    """Create or upgrade the schema if need be; StoreError if it is newer or another program's."""
    if database.embedded:
        _use_write_ahead_log(database)
    with database.reading() as connection:
        current = revision(connection) == _newest(scripts)
    if not current:
        _upgrade(database, scripts)
    database.schema = _newest(scripts)


def _upgrade(database: Database, scripts: Path) -> None:
    """Loads alembic, which takes longer than all that most commands ask of a store."""
    from alembic import command  # noqa: PLC0415

    script = _directory(scripts)
    with database.reading() as connection:
        if _is_current(connection, database, script):
            return
    with database.writing() as connection:
        if not database.embedded:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        # Checked again under the lock: another process may have done it meanwhile.
        if not _is_current(connection, database, script):
            _refuse_first_columns(connection, database)
            config = _config(scripts)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


@cache  # of a process: a folder of migrations is part of a release
def _newest(scripts: Path) -> str:
    """Each migration's file begins with its revision."""
    return max(file.stem[1:5] for file in (scripts / "versions").glob("v*.py"))


def _is_current(connection: Connection, database: Database, script: ScriptDirectory) -> bool:
    found = revision(connection)
    known = {known.revision for known in script.walk_revisions()}
    if found is None:
        _refuse_foreign(connection, database)
    elif found not in known:
        raise StoreError(
            f"the results database {database.location} was written by a newer dsbisect"
            f" (schema {found}; this one knows up to {script.get_current_head()})",
            hint=f"upgrade dsbisect, or {ELSEWHERE}",
        )
    return found == script.get_current_head()


def _refuse_foreign(connection: Connection, database: Database) -> None:
    taken = sorted(set(inspect(connection).get_table_names()) & set(METADATA.tables))
    if taken:
        raise StoreError(
            f"{database.location} holds another program's tables: {', '.join(taken)}",
            hint=f"give dsbisect its own database: {ELSEWHERE}",
        )


def _refuse_first_columns(connection: Connection, database: Database) -> None:
    """Columns were renamed once without a migration, when nothing had been released."""
    if revision(connection) is None:
        return
    names = {each["name"] for each in inspect(connection).get_columns("campaigns")}
    if "settings_id" not in names:
        raise StoreError(
            f"{database.location} was written by a dsbisect from before 2026-11-22, whose columns"
            " had other names",
            hint=f"measure again into a new store, or {ELSEWHERE}; commit 93de3cba still reads it",
        )


def _use_write_ahead_log(database: Database) -> None:
    """Let readers and a writer work at once; the setting stays in the file.

    SQLite does not honour the busy timeout for this one statement, hence the loop.
    """
    deadline = Deadline.after(database.lock_wait_s)
    with translated(database.location), database.engine.connect() as plain:
        connection = plain.execution_options(dsbisect_begin="")  # not allowed in a transaction
        while connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
            try:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            except OperationalError as error:
                if "locked" not in str(error.orig) or deadline.passed:
                    raise
                time.sleep(0.02)
            else:
                return  # a file system without shared memory keeps its own journal mode


@cache
def _directory(scripts: Path) -> ScriptDirectory:
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    return ScriptDirectory.from_config(_config(scripts))


def _config(scripts: Path) -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["version_table"] = VERSION_TABLE
    return config


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

    @property
    def database(self) -> Database:
        """For those who write more in one transaction than a method here does."""
        return self._database

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

    def settle_turns(self, campaign_id: str, machines: Collection[str] | None) -> int:
        """End what these machines began, or all: done if all was measured, else given up."""
        with self._database.writing() as connection:
            return settle_turns(self._database, connection, campaign_id, machines)

    def turn_state(self, turn_id: str) -> TurnState | None:
        """How far a turn came; None if it is not stored."""
        return find_turn_state(self._database, turn_id)

    def turns(self, campaign_id: str) -> list[Turn]:
        """A campaign's turns with all their attempts, in order."""
        return find_turns(self._database, campaign_id)

    def add_finding(self, finding: Finding) -> bool:
        """Keep a finding; False if it exists already, StoreError if it differs."""
        with self._database.writing() as connection:
            return put_finding(self._database, connection, finding)

    def findings(self, *kinds: FindingKind, newest: int | None = None) -> list[Finding]:
        """Those of these kinds, or all, in time order; so many of the newest if that is given."""
        return find_findings(self._database, kinds=kinds, newest=newest)

    def findings_on(self, kind: FindingKind, campaigns: Iterable[str]) -> list[Finding]:
        """Those of a kind that rest on one of these campaigns alone."""
        ids = [finding_id(kind, campaign) for campaign in campaigns]
        return find_findings(self._database, ids=ids) if ids else []

    def finding(self, identity: str) -> Finding | None:
        return next(iter(find_findings(self._database, ids=[identity])), None)

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
        newest: int | None = None,
    ) -> list[Campaign]:
        """The campaigns that match everything given, in time order; or the newest of them."""
        given = {"series_id": series_id, "workload_id": workload_id, "settings_id": settings_id}
        return find_campaigns(self._database, given, finished=finished, newest=newest)

    def campaigns_without(self, candidate: str) -> list[Campaign]:
        """Campaigns that could not measure a candidate, in time order."""
        return find_campaigns_without(self._database, candidate)

    def campaigns_there(self, ids: Collection[str]) -> set[str]:
        """Which of these ids are campaigns."""
        return find_campaign_ids(self._database, ids)

    def campaigns_with(self, ids: Collection[str]) -> dict[str, Campaign]:
        """Those of these ids that there are."""
        found = find_campaigns(self._database, {}, ids=ids) if ids else []
        return {each.id: each for each in found}

    def planned_turns(self) -> list[Turn]:
        """Turns of any campaign that somebody is to take, or takes."""
        return find_planned_turns(self._database)

    def campaign(self, campaign_id: str) -> Campaign | None:
        return next(iter(find_campaigns(self._database, {"id": campaign_id})), None)

    def whole_id(self, start: str) -> str:
        """The id of the one campaign or finding that begins so; the text itself if none does."""
        found = [each for each in ids_from(self._database, start) if each.startswith(start)]
        if start in found or not found:
            return start
        if len(found) > 1:
            raise UsageError(
                f"{len(found)} ids in {self} begin with {start!r}",
                hint=f"more of it: {found[0]} and {found[1]} are two of them",
            )
        return found[0]

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

    def images_of(self, candidate_id: str) -> list[Image]:
        """Every manifest of a candidate, the newest last."""
        return find_images(self._database, {"candidate_id": candidate_id})

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
