"""When a container is ended for what is written, and when it is not its fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsharness.containers import disk_watch
from dsharness.containers.container import Container
from dsharness.containers.disk_watch import LEAST_ROOM, DiskWatch
from dsharness.containers.engine import Engine

GIB = 1 << 30
ENGINE = Engine(
    podman_version="4.3.1", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
PLACE = (Path("/layer"),)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[..., DiskWatch]:
    """A watch after it saw this much room, of which the container took so much."""

    def look(*rooms: int, own: int = 0) -> DiskWatch:
        watch = DiskWatch(engine=ENGINE, most_bytes=8 * GIB)
        monkeypatch.setattr(disk_watch, "written", lambda *_: own)
        for room in rooms:
            monkeypatch.setattr(disk_watch, "_room", lambda _, room=room: room)
            watch.look(PLACE)
        return watch

    return look


def test_it_wrote_more_than_it_may(seen: Callable[..., DiskWatch]) -> None:
    watch = seen(50 * GIB, 41 * GIB, own=9 * GIB)
    assert watch.why == "it wrote more than 8192 MiB"
    error = Container(engine=ENGINE, name="c", log=Path("l"), disk=watch).overfilled()
    assert error is not None
    assert not error.killed


def test_files_are_counted_only_when_room_was_lost(
    seen: Callable[..., DiskWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = seen(50 * GIB, 43 * GIB, 60 * GIB, own=99 * GIB)
    assert watch.why is None
    assert not watch.look(())


def test_what_others_write_is_not_its_own(seen: Callable[..., DiskWatch]) -> None:
    assert seen(50 * GIB, 41 * GIB, 30 * GIB, 2 * GIB, own=GIB).why is None


def test_a_disk_that_nobody_is_known_to_have_filled_keeps_room(
    seen: Callable[..., DiskWatch],
) -> None:
    """Such as by a file without a name: it may be another's fault, so that it is tried again."""
    watch = seen(9 * GIB, LEAST_ROOM - 1)
    assert watch.why == "the disk had less than 1024 MiB left"
    error = Container(engine=ENGINE, name="c", log=Path("l"), disk=watch).overfilled()
    assert error is not None
    assert error.killed


def test_a_disk_that_had_no_room_before_is_another_matter(seen: Callable[..., DiskWatch]) -> None:
    assert seen(2 * LEAST_ROOM, 0).why is None
