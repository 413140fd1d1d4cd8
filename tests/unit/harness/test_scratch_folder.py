"""Temporary folders: gone at the end, and after a process that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dsharness.containers.lab_folders import YOUNG_S, scratch_folder
from dsharness.systems.readiness import shared_folder

HOLD = """
import sys
from pathlib import Path
from dsharness.containers.lab_folders import scratch_folder
with scratch_folder("run", Path(sys.argv[1])) as folder:
    (folder / "deep").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


def held(place: Path) -> tuple[subprocess.Popen[str], Path]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


def age(folder: Path) -> None:
    then = folder.stat().st_mtime - YOUNG_S - 1
    os.utime(folder, (then, then))


def test_what_a_killed_process_left_goes_and_nothing_else(tmp_path: Path) -> None:
    (one, left), (other, living) = held(tmp_path), held(tmp_path)
    with one, other:
        one.kill()
        one.wait()
        (link := tmp_path / "dsbisect-tmp-run-link").symlink_to(tmp_path)
        (strange := tmp_path / "dsb-other").mkdir()
        (young := tmp_path / "dsbisect-tmp-run-young").mkdir()
        for folder in (left, living, strange):
            age(folder)
        with scratch_folder("run", tmp_path) as own:
            assert sorted(tmp_path.iterdir()) == sorted([living, link, strange, young, own])
            assert own.stat().st_mode & 0o777 == 0o700
        other.kill()
    assert not own.exists()


def test_a_socket_in_a_shared_folder_has_a_short_path(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with shared_folder() as folder:
        assert len(str(folder / "ldapi")) < 60
        assert folder.stat().st_mode & 0o777 == 0o777
