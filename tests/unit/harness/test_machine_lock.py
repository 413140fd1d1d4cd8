"""Two labs on one machine never measure at the same time."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from dsharness.machine.machine_lock import lock_file, measuring_alone


def lab(place: Path, log: Path, turns: int) -> int:
    """Take turns in a process of its own; each says when it begins and when it ends."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            for _ in range(turns):
                with measuring_alone(lambda _: None, place):
                    os.write(descriptor, b"(")
                    time.sleep(0.01)
                    os.write(descriptor, b")")
            status = 0
        finally:
            os._exit(status)
    return pid


def test_labs_take_turns(tmp_path: Path) -> None:
    place, log = tmp_path / "lock", tmp_path / "log"
    labs = [lab(place, log, 20) for _ in range(3)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in labs] == [0, 0, 0]
    assert log.read_text() == "()" * 60


def test_who_waits_is_told_for_whom_and_a_killed_holder_frees_it(tmp_path: Path) -> None:
    place, waits = tmp_path / "lock", []
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with measuring_alone(lambda _: None, place):
            os.write(writing, b"held")
            time.sleep(60)
        os._exit(0)
    os.read(reading, 4)

    def told(what: str) -> None:
        waits.append(what)
        os.kill(pid, 9)

    with measuring_alone(told, place):
        pass
    os.waitpid(pid, 0)
    assert waits == [f"waiting: process {pid} measures on this machine"]
    with measuring_alone(waits.append, place):
        pass
    assert len(waits) == 1


def test_every_user_agrees_on_one_file_that_all_may_open(tmp_path: Path, monkeypatch) -> None:
    private, shared, last = (tmp_path / name for name in ("private", "shared", "last"))
    for folder, mode in ((private, 0o755), (shared, 0o1777), (last, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
    places = (tmp_path / "none", private, shared, last)
    assert lock_file(places).parent == shared
    monkeypatch.setattr("dsharness.machine.machine_lock.SHARED", places)
    previous = os.umask(0o077)
    try:
        with measuring_alone(lambda _: None):
            pass
    finally:
        os.umask(previous)
    assert stat.S_IMODE(lock_file(places).stat().st_mode) == 0o644


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(OSError, match="symbolic links"),
        measuring_alone(lambda _: None, tmp_path / "lock"),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()
