"""Each way a database can fail: a message with its place, and what to do next."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from store_values import fill, sample

from dsharness.errors import DiskFullError, StoreError
from dsresults.store import Store

NOBODY = 65534


def refusal(place: str | Path, **options: object) -> str:
    with pytest.raises(StoreError) as caught:
        Store.open(place, **options)
    assert caught.value.hint
    return caught.value.message


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("This is not a database.\n" * 100)
    assert refusal(place) == f"{place} is not a results database, or it is damaged"
    assert place.read_text().startswith("This is not")


@pytest.mark.whole
def test_a_damaged_database(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with Store.open(place) as store:
        for number in range(50):
            store.put(sample(str(number), log="x" * 4000))
    content = bytearray(place.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    place.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"), Store.open(place) as store:
        store.samples()


def test_another_program_s_database(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with closing(sqlite3.connect(place)) as other:
        other.execute("CREATE TABLE samples (name)")
    assert refusal(place) == f"{place} holds another program's tables: samples"


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    place = tmp_path / "typo" / "s.db"
    assert refusal(place) == f"the folder of the results database {place} does not exist"


def test_a_folder_as_the_database(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"the results database {tmp_path} cannot be opened for writing"


def test_no_database_where_one_is_to_be_read(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    assert refusal(place, create=False) == f"there is no results database {place}"
    assert not place.exists()


def test_the_default_place_s_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DSBISECT_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    Store.open().close()
    assert (tmp_path / "share/dsbisect/dsbisect.db").is_file()


def test_a_default_place_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DSBISECT_STORE", raising=False)
    (tmp_path / "share").write_text("a file")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="cannot be made: Not a directory"):
        Store.open()


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write anywhere; be nobody for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("exists", [True, False], ids=["there", "new"])
def test_a_read_only_folder(exists: bool) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        Store.open((folder if exists else Path(name)) / "s.db").close()
        if not exists:
            (folder / "s.db").unlink()
        folder.chmod(0o555)
        with unprivileged():
            complaint = refusal(folder / "s.db")
        folder.chmod(0o755)
    assert complaint == f"the results database {folder}/s.db cannot be opened for writing"


def test_a_database_locked_for_too_long(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with Store.open(place, lock_wait_s=0.1) as store, closing(sqlite3.connect(place)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="stayed locked by another process") as caught:
            store.put(sample("a"))
        assert "fuser" in caught.value.hint
        assert store.samples() == []  # readers do not wait for a writer
        other.rollback()
        assert store.put(sample("a"))


def test_a_first_open_waits_for_the_lock_only_so_long(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with closing(sqlite3.connect(place)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "stayed locked" in refusal(place, lock_wait_s=0.1)


def test_a_full_database_keeps_what_it_has(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:

        @event.listens_for(store._database.engine, "connect")
        def limit(connection: sqlite3.Connection, _: object) -> None:
            connection.execute("PRAGMA max_page_count = 60")

        kept = fill(store)
        assert len(store.samples()) == kept > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(tmp_path)]
    mounted = subprocess.run(mount, check=False, capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root and CAP_SYS_ADMIN")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_keeps_what_was_stored(small_disk: Path) -> None:
    with Store.open(small_disk / "s.db") as store:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 200_000)
        kept = fill(store)
        ballast.unlink()  # some space is freed: nothing is lost, and work continues
        assert len(store.samples()) == kept > 0
        assert store.put(sample("after"))


def test_a_disk_full_from_the_start(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "ballast").write_bytes(b"x" * 1_000_000)
    with pytest.raises(DiskFullError):
        Store.open(small_disk / "s.db")


def test_postgresql_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError) as caught:
        Store.open("postgresql://ann:s3cret@h/lab")
    assert "--extra postgresql" in caught.value.hint
    assert "s3cret" not in str(caught.value)


def test_a_postgresql_nobody_serves() -> None:
    complaint = refusal("postgresql://ann:s3cret@127.0.0.1:1/lab")
    assert complaint.startswith(
        "the results database postgresql://ann:***@127.0.0.1:1/lab cannot be reached: "
    )
    assert "s3cret" not in complaint
