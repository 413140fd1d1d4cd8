"""Folders of builds: gone at the end, and gone after a process that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsbuilds.sandbox.untrusted_files import YOUNG_S, temporary_folder, temporary_name

HOLD = """
import sys
from pathlib import Path
from dsbuilds.sandbox.untrusted_files import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "deep" / "deeper").mkdir(parents=True)
    print("made", flush=True)
    sys.stdin.read()
"""


def held(folder: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "made\n"
    return child


def age(folder: Path) -> None:
    then = folder.stat().st_mtime - YOUNG_S - 1
    os.utime(folder, (then, then))


def test_it_is_there_and_then_gone(tmp_path: Path) -> None:
    with temporary_folder(temporary_name(tmp_path / "work", "package")) as folder:
        (folder / "file").write_text("x", encoding="utf-8")
    assert not list((tmp_path / "work").iterdir())


def test_an_error_removes_it_too(tmp_path: Path) -> None:
    folder = temporary_name(tmp_path, "package")
    with pytest.raises(KeyboardInterrupt), temporary_folder(folder):
        raise KeyboardInterrupt
    assert not folder.exists()


def test_what_a_killed_process_left_goes_and_what_a_living_one_holds_stays(tmp_path: Path) -> None:
    places = [temporary_name(tmp_path, "package") for _ in range(2)]
    (other := tmp_path / "clean-0123").mkdir()
    with held(places[0]) as killed, held(places[1]) as living:
        killed.kill()
        killed.wait()
        for folder in tmp_path.iterdir():
            age(folder)
        with temporary_folder(temporary_name(tmp_path, "package")):
            left = [place.exists() for place in places]
        living.communicate("")
    assert left == [False, True]
    assert list(tmp_path.iterdir()) == [other], "of another kind, and its own at the end"


def test_one_that_was_just_made_may_not_be_locked_yet(tmp_path: Path) -> None:
    (young := tmp_path / "package-0123").mkdir()
    with temporary_folder(temporary_name(tmp_path, "package")):
        assert young.exists()
