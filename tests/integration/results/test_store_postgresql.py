"""A team's store: the same promises kept by a real PostgreSQL, in a cluster of the test's own."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from forks import forked
from hypothesis import given, settings
from leasing_labs import prove_an_answer_is_never_rewritten, prove_one_process_at_a_time
from postgresql_cluster import Cluster, running_cluster
from sqlalchemy import text
from store_values import (
    BOUNDARY,
    EXPORT,
    FINISHED,
    IMAGE,
    SAMPLES,
    UNFINISHED,
    fill,
    prove_campaigns_that_could_not_measure_are_found,
    prove_kill_keeps_what_was_stored,
    prove_writers_lose_nothing,
    sample,
)
from stored_samples import ANY_SAMPLE

from dsharness.errors import StoreError, UpgradedError, UsageError
from dsharness.model import Sample
from dsresults.store import Imported, Store
from dsresults.store.database import VERSION_TABLE, Database
from dsresults.store.location import locate
from dsresults.store.tables import METADATA


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.url(cluster.new_database())


def test_processes_opening_and_writing_at_once_lose_nothing(url: str) -> None:
    prove_writers_lose_nothing(url)


def test_campaigns_that_could_not_measure_a_candidate_are_found(url: str) -> None:
    with Store.open(url) as store:
        prove_campaigns_that_could_not_measure_are_found(store)


def test_a_killed_writer_leaves_the_store_intact(url: str) -> None:
    prove_kill_keeps_what_was_stored(url)


def test_one_search_has_one_process(url: str) -> None:
    prove_one_process_at_a_time(url)


def test_an_answer_is_never_rewritten(url: str) -> None:
    prove_an_answer_is_never_rewritten(url)


def test_the_migrations_end_at_the_tables(url: str) -> None:
    Store.open(url).close()
    with Database(locate(url)).reading() as connection:
        options = {"version_table": VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, METADATA) == []


def test_an_export_moves_from_a_file_to_the_team_and_back(url: str, tmp_path: Path) -> None:
    with Store.open(url) as team:
        with EXPORT.open(encoding="utf-8") as lines:
            assert team.import_jsonl(lines) == Imported(images=1, campaigns=2, samples=2)
        with (tmp_path / "out.jsonl").open("w") as stream:
            team.export_jsonl(stream)
    with Store.open(tmp_path / "own.db") as own, (tmp_path / "out.jsonl").open() as lines:
        own.import_jsonl(lines)
        assert (own.samples(), own.campaigns()) == (SAMPLES, [FINISHED, UNFINISHED])
        assert own.image(IMAGE.key) == IMAGE


def test_a_campaign_from_its_start_to_its_answer(url: str) -> None:
    mark = UNFINISHED.fingerprint
    with Store.open(url) as store:
        assert store.put(UNFINISHED)
        assert store.put(sample("a", campaign_id=UNFINISHED.id))
        assert not store.put(sample("a", campaign_id=UNFINISHED.id))
        assert store.campaigns(fingerprint=mark, finished=False) == [UNFINISHED]
        store.finish_campaign(UNFINISHED.id, BOUNDARY, "2026-11-21T13:00:00Z")
        assert store.campaigns(fingerprint=mark, finished=False) == []
        answered = store.campaign(UNFINISHED.id)
        assert answered is not None
        assert answered.boundary == BOUNDARY
        assert store.sample_counts() == {UNFINISHED.id: 1}
        with pytest.raises(StoreError, match="another duration_s"):
            store.put(sample("a", campaign_id=UNFINISHED.id, duration_s=1.0))


def test_any_sample_comes_back_exactly(url: str) -> None:
    kept: dict[str, Sample] = {}
    with Store.open(url) as store:

        @settings(max_examples=60, deadline=None)
        @given(one=ANY_SAMPLE)
        def law(one: Sample) -> None:
            distinct = one.model_copy(update={"id": f"{len(kept)}{one.id}"})
            store.put(distinct)
            kept[distinct.id] = distinct
            assert store.sample(distinct.id) == distinct

        law()
        assert {one.id: one for one in store.samples()} == kept


@pytest.mark.parametrize(
    ("text", "hostile"),
    [
        ('"image_key": "', '"image_key": "\\u0000'),
        ('"image_key": "', '"image_key": "\\ud800'),
        ('"operations": ', '"operations": 9999999999999999999'),
    ],
)
def test_an_import_that_no_database_holds_is_refused_whole(
    url: str, text: str, hostile: str
) -> None:
    lines = EXPORT.read_text(encoding="utf-8")
    assert text in lines
    with Store.open(url) as store:
        with pytest.raises(UsageError, match="line 5"):
            store.import_jsonl(lines.replace(text, hostile, 1).splitlines(keepends=True))
        assert store.samples() == []
        assert store.campaigns() == []


def test_a_newer_schema_is_left_alone(cluster: Cluster) -> None:
    name = cluster.new_database()
    Store.open(cluster.url(name)).close()
    cluster.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'", database=name)
    with pytest.raises(StoreError, match="written by a newer dsbisect"):
        Store.open(cluster.url(name))


def test_a_process_that_runs_while_the_schema_is_upgraded_writes_nothing(cluster: Cluster) -> None:
    name = cluster.new_database()
    with Store.open(cluster.url(name)) as running:
        running.put(sample("a"))
        cluster.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'", database=name)
        with pytest.raises(UpgradedError, match=r"upgraded by a newer dsbisect \(schema 9999"):
            running.put(sample("b"))
        assert [each.id for each in running.samples()] == ["a"]
        cluster.execute("ALTER TABLE samples RENAME errors TO wrongs", database=name)
        with pytest.raises(UpgradedError, match="not as this dsbisect knows it: column"):
            running.samples()


def test_another_program_s_tables_are_left_alone(cluster: Cluster) -> None:
    name = cluster.new_database()
    cluster.execute("CREATE TABLE samples (name text)", database=name)
    with pytest.raises(StoreError, match="holds another program's tables: samples"):
        Store.open(cluster.url(name))


def test_a_table_locked_for_too_long(cluster: Cluster) -> None:
    name = cluster.new_database()
    address = f"host={cluster.folder} user={cluster.user} dbname={name}"
    with Store.open(cluster.url(name), lock_wait_s=0.2) as store:
        with psycopg.connect(address) as other:
            other.execute("LOCK TABLE samples IN EXCLUSIVE MODE")
            with pytest.raises(StoreError, match="stayed locked by another process"):
                store.put(sample("a"))
            assert store.samples() == []
        assert store.put(sample("a"))


def test_a_server_that_ended_connections_is_reached_again(cluster: Cluster) -> None:
    name = cluster.new_database()
    with Store.open(cluster.url(name)) as store:
        store.put(sample("a"))
        cluster.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        assert store.put(sample("b"))


def test_connections_are_kept_and_belong_to_one_process(url: str) -> None:
    def backend(store: Store) -> int:
        with store.database.reading() as connection:
            return int(connection.scalar(text("SELECT pg_backend_pid()")) or 0)

    with Store.open(url) as store:
        ours = backend(store)
        assert backend(store) == ours

        def child(lines: TextIO) -> int:
            print(backend(store), file=lines)
            return 0

        with forked(child) as process:
            theirs = int(process.lines.readline())
        assert theirs not in {0, ours}
        assert backend(store) == ours


def test_a_wrong_password_is_not_told(cluster: Cluster) -> None:
    cluster.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    address = cluster.url("postgres", "guarded:s3cret")
    with pytest.raises(StoreError, match=r"cannot be reached: .*password authentication") as caught:
        Store.open(address)
    assert "s3cret" not in str(caught.value)


def test_a_database_that_does_not_exist(cluster: Cluster) -> None:
    with pytest.raises(StoreError, match=r'cannot be reached: .*"nowhere" does not exist'):
        Store.open(cluster.url("nowhere"))


def test_a_role_that_may_not_write(cluster: Cluster) -> None:
    name = cluster.new_database()
    Store.open(cluster.url(name)).close()
    reader = f"r{name}"
    grant = f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}"
    cluster.execute(f"CREATE ROLE {reader} LOGIN", grant, database=name)
    with Store.open(cluster.url(name, reader)) as store:
        assert store.samples() == []
        with pytest.raises(StoreError, match="does not let this role do that"):
            store.put(sample("a"))


def test_a_full_disk_keeps_what_was_stored(cluster: Cluster) -> None:
    disk = cluster.folder / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root and CAP_SYS_ADMIN")
    name = f"lab_{uuid.uuid4().hex[:8]}"
    try:
        shutil.chown(disk, cluster.user)
        cluster.execute(
            f"CREATE TABLESPACE small LOCATION '{disk}'",
            f"CREATE DATABASE {name} TABLESPACE small",
        )
        with Store.open(cluster.url(name)) as store:
            kept = fill(store)
            assert len(store.samples()) == kept > 0
        cluster.execute(f"DROP DATABASE {name}", "DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


LOOPBACK = "127.0.89.38"  # where no other server listens


def test_a_database_of_another_host_is_talked_to_in_tls_or_not_at_all() -> None:
    """By a name, which leads here; the driver alone goes on in clear text where there is no TLS."""
    with running_cluster(address=LOOPBACK) as cluster:
        name = cluster.new_database()
        cluster.execute("CREATE ROLE lab LOGIN SUPERUSER PASSWORD 'secret'")
        url = f"postgresql://lab:secret@db.example.org/{name}?hostaddr={LOOPBACK}"
        with Store.open(url) as store, store.database.reading() as connection:
            asked = text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            assert connection.scalar(asked) is True
        access = cluster.folder / "data" / "pg_hba.conf"
        access.write_text(access.read_text() + "host all all all scram-sha-256\n")
        bare = f"-c listen_addresses={LOOPBACK} -c fsync=off -k {cluster.folder}"
        cluster.control("restart", "-w", "-m", "fast", "-l", "/dev/null", "-o", bare)
        with pytest.raises(StoreError, match=r"does not encrypt: .*SSL was required") as refused:
            Store.open(url)
        assert "sslmode=disable" in str(refused.value.hint)
        assert "secret" not in f"{refused.value} {refused.value.hint}"
        with Store.open(f"{url}&sslmode=disable") as store:
            assert store.samples() == []
