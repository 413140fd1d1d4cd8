from __future__ import annotations

import subprocess
import sys

import pytest

from dsharness.errors import DeadlineError
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive

HOLDER = """
import sys
from pathlib import Path
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive
with exclusive(Path(sys.argv[1]), Deadline.after(5)):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_holder_at_a_time(tmp_path):
    path = tmp_path / "deep" / "x.lock"
    with (
        exclusive(path, Deadline.after(1)),
        pytest.raises(DeadlineError, match=r"x\.lock"),
        exclusive(path, Deadline.after(0.2)),
    ):
        pass
    with exclusive(path, Deadline.after(0)):
        pass


def test_a_killed_process_lets_go(tmp_path):
    path = tmp_path / "x.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DeadlineError), exclusive(path, Deadline.after(0.2)):
            pass
        holder.kill()
        holder.wait()
        with exclusive(path, Deadline.after(5)):
            pass
