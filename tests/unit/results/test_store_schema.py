"""An older database is upgraded whole or not at all; a newer one is left alone."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from store_values import FINISHED, IMAGE, sample

from dsharness.errors import StoreError, UpgradedError
from dsharness.process.deadline import Deadline, wait_until
from dslab.campaign_loop import leased
from dsresults.store import Store
from dsresults.store.database import VERSION_TABLE, Database
from dsresults.store.location import locate
from dsresults.store.schema import OLD_READER, SCRIPTS, prepare
from dsresults.store.tables import METADATA

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = {head!r}

def upgrade():
    op.add_column("samples", sa.Column("note", sa.Text))
    op.execute("UPDATE samples SET note = 'migrated ' || id")
    {last}
"""


def head(place: Path) -> str:
    with closing(sqlite3.connect(place)) as connection:
        return connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()[0]


def next_version(tmp_path: Path, current: str, last: str = "") -> Path:
    """The migrations of a dsbisect that is one revision ahead."""
    scripts = tmp_path / "migrations"
    shutil.copytree(SCRIPTS, scripts)
    (scripts / "versions" / "v9999_note.py").write_text(NEXT.format(head=current, last=last))
    return scripts


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    place = tmp_path / "s.db"
    with Store.open(place) as store:
        store.put(sample("a"))
        store.put(FINISHED)
        store.put(IMAGE)
    return place


def test_the_migrations_end_at_the_tables(filled: Path) -> None:
    with Database(locate(filled)).reading() as connection:
        options = {"version_table": VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, METADATA) == []


def test_a_store_of_this_version_is_opened_without_what_upgrades_one(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("alembic", "alembic.config", "alembic.script"):
        monkeypatch.setitem(sys.modules, name, None)
    with Store.open(filled) as store:
        assert store.samples() == [sample("a")]
    filled.unlink()
    with pytest.raises(ImportError):
        Store.open(filled)


def test_an_upgrade_keeps_the_data_and_the_old_program_then_declines(
    filled: Path, tmp_path: Path
) -> None:
    old = head(filled)
    prepare(Database(locate(filled)), scripts=next_version(tmp_path, old))
    assert head(filled) == "9999"
    with closing(sqlite3.connect(filled)) as connection:
        notes = connection.execute("SELECT id, note FROM samples").fetchall()
        others = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("documents", "turns")
        ]
    assert notes == [("a", "migrated a")]
    assert others == [2, 0]
    with pytest.raises(StoreError) as caught:
        Store.open(filled)
    assert caught.value.message == (
        f"the results database {filled} was written by a newer dsbisect"
        f" (schema 9999; this one knows up to {old})"
    )
    assert "upgrade dsbisect" in caught.value.hint


def test_a_store_of_an_older_form_is_one_clear_error_that_says_how_to_take_it_along(
    tmp_path: Path,
) -> None:
    place = tmp_path / "old.db"
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(f"CREATE TABLE {VERSION_TABLE} (version_num TEXT)")
        connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES ('0007')")
        connection.execute("CREATE TABLE samples (id TEXT)")
    before = place.read_bytes()
    with pytest.raises(StoreError) as caught:
        Store.open(place)
    assert caught.value.message == (
        f"the results database {place} is of an older form (schema 0007; this dsbisect reads 0010"
        " and later)"
    )
    assert f"commit {OLD_READER} of dsbisect" in caught.value.hint
    assert "`dsbisect results export --store OLD FILE`" in caught.value.hint
    assert "`dsbisect results import --store NEW FILE`" in caught.value.hint
    assert head(place) == "0007"
    assert len(place.read_bytes()) == len(before)


def test_who_wrote_before_an_upgrade_writes_nothing_after_it(filled: Path, tmp_path: Path) -> None:
    with Store.open(filled) as running:
        old = head(filled)
        prepare(Database(locate(filled)), scripts=next_version(tmp_path, old))
        with pytest.raises(UpgradedError) as caught:
            running.put(sample("b"))
        assert [each.id for each in running.samples()] == ["a"]
    assert caught.value.message == (
        f"the results database {filled} was upgraded by a newer dsbisect (schema 9999;"
        f" this process writes {old}): nothing more is written"
    )


def test_a_search_whose_store_is_upgraded_ends_with_that_reason(
    filled: Path, tmp_path: Path
) -> None:
    with Store.open(filled) as running, leased(running, "k", "w", every_s=0.01) as lease:
        lease.check()
        prepare(Database(locate(filled)), scripts=next_version(tmp_path, head(filled)))
        wait_until(lambda: lease.upgraded or None, Deadline.after(10), what="the next beat")
        with pytest.raises(UpgradedError, match="nothing more is written"):
            lease.check()


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(filled: Path, tmp_path: Path) -> None:
    old = head(filled)
    failing = next_version(tmp_path, old, last="op.execute('SELECT * FROM nowhere')")
    with pytest.raises(StoreError, match="no such table: nowhere"):
        prepare(Database(locate(filled)), scripts=failing)
    assert head(filled) == old
    with Store.open(filled) as store:
        assert store.samples() == [sample("a")]
        assert store.campaign(FINISHED.id) == FINISHED


def test_readers_and_a_writer_do_not_block_each_other(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    place.touch()
    with Store.open(place) as store:
        assert store.samples() == []


def test_a_value_of_another_version_is_named(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("""UPDATE samples SET rest = json_set(rest, '$.colour', 'red')""")
    said = "the stored sample 'a' cannot be read: colour: Extra inputs are not permitted, got 'red'"
    told: list[str] = []
    with Store.open(filled) as store:
        store.database.tell = told.append
        assert store.samples() == store.samples() == []
        with pytest.raises(StoreError) as caught:
            store.sample("a")
    assert told == [f"left out: {said}"]
    assert caught.value.message == said
