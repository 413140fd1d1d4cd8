"""`judge` may end with 0, 1, 125 and, after a Ctrl-C, 130; with nothing else, whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dsbisect.command import judged
from dsharness.errors import ExitCode

RUN = "from dsbisect.command import main; main()"


def ends_with(*args: str, code: str = RUN, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *args], text=True, capture_output=True, check=False,
        env={**os.environ, **env}, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("code", [c for c in ExitCode if c not in {ExitCode.OK, 130}])
def test_no_error_of_the_lab_blames_a_commit(code):
    assert judged(int(code)) == 125


@pytest.mark.parametrize(
    ("code", "meant"),
    [(0, 0), (None, 0), (1001, 1), (125, 125), (130, 130), (137, 125), ("x", 125)],
)
def test_what_a_status_means(code, meant):
    assert judged(code) == meant


@pytest.mark.parametrize(
    "args",
    [
        ("--nonsense",),
        ("--good", "x"),
        ("--good", "x", "--bad", "y", "--repo", "/nonexistent"),
        ("--good", "x", "--bad", "y", "--workload", "no-such"),
        ("--good", "x", "--bad", "y", "--matrix", "/nonexistent.yaml"),
    ],
)
def test_a_wrong_command_line_is_a_skip_with_a_warning(tmp_path, args):
    code, said = ends_with("judge", *args)
    assert code == 125
    assert "warning: not judged" in said


def test_a_library_that_is_missing_is_a_skip():
    hidden = "import sys; sys.modules['pydantic'] = None\n" + RUN
    code, said = ends_with("judge", code=hidden)
    assert code == 125
    assert "ModuleNotFoundError" in said


def test_other_commands_keep_their_status():
    assert ends_with("matrix", "show", "--nonsense")[0] == ExitCode.USAGE
