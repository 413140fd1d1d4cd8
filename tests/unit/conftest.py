"""What the tests without containers share: how much of a processor each file takes."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECORD = HERE / "durations.json"  # seconds of CPU time, that of child processes too
MEMORY = Path("/dev/shm")
TEMPLATE = "migrated.db"
ROOM = 2 << 30  # bytes; one run leaves 150 MB, and pytest keeps three; a container has 64 MB
_took: Counter[str] = Counter()


def pytest_configure(config: pytest.Config) -> None:
    """Where only unit tests run, their folders are in memory: stores and git wait for no disk."""
    given = [Path(each.partition("::")[0]).resolve() for each in config.args]
    if all(each.is_relative_to(HERE) for each in given) and _holds_programs(MEMORY):
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None  # it is asked for again


def _holds_programs(folder: Path) -> bool:
    """Whether files can be written there, and enough, and started."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    free = found.f_bavail * found.f_frsize
    return free > ROOM and os.access(folder, os.W_OK) and not found.f_flag & os.ST_NOEXEC


def pytest_collection_finish() -> None:
    """A new store is a copy of one that was migrated; the tests of stores migrate each."""
    store = sys.modules.get("dsresults.store.store")
    if store is None:
        return
    ready_file = store.ready_file

    @functools.cache
    def migrated() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            store.Store.open(Path(folder) / TEMPLATE).close()
            return (Path(folder) / TEMPLATE).read_bytes()

    def copied(file: Path, *, create: bool, make_folder: bool) -> None:
        own = "results/test_store" in os.environ.get("PYTEST_CURRENT_TEST", "")
        if create and not own and file.name != TEMPLATE and file.parent.is_dir():
            with contextlib.suppress(OSError):  # as in the product, whose error is better
                _put(file, migrated())
        ready_file(file, create=create, make_folder=make_folder)

    store.ready_file = copied


def _put(file: Path, content: bytes) -> None:
    """Whole or not at all, and never over another."""
    if not file.exists():
        new = file.with_name(f"{file.name}.{os.getpid()}")
        new.touch(0o600)
        new.write_bytes(content)
        try:
            os.link(new, file)
        finally:
            new.unlink()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    done = yield
    _took[str(item.path.relative_to(HERE))] += sum(os.times()[:4]) - before
    return done


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Of the files that were run, as they took it this time."""
    if session.config.getoption("record"):
        known = json.loads(RECORD.read_text(encoding="utf-8"))
        kept = {name: s for name, s in known.items() if (HERE / name).exists()}
        found = {**kept, **{name: round(seconds, 1) for name, seconds in _took.items()}}
        RECORD.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")
