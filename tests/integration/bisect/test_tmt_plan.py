"""The example's plan by the real tmt, with a stand-in for the command that takes long."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[3]
PLAN = ROOT / "examples/tmt"
STEPS = ("discover", "provision", "execute", "report", "finish", "cleanup")  # no `prepare`
STAND_IN = """#!/bin/sh
mkdir -p "$TMT_TEST_DATA/validation"
echo '<p>page</p>' >"$TMT_TEST_DATA/validation/report.html"
echo "an answer"
exit {status}
"""


def run_plan(tmp_path: Path, status: int) -> tuple[int, dict[str, Any], Path]:
    """The exit status of tmt, its result, and the folder of the test's data."""
    stand_in, run = tmp_path / "dsbisect", tmp_path / "run"
    stand_in.write_text(STAND_IN.format(status=status), encoding="utf-8")
    stand_in.chmod(0o755)
    done = subprocess.run(
        [
            ROOT / ".venv/bin/tmt", "--root", PLAN, "--feeling-safe",
            "run", "--id", run, "-e", "DSBISECT_EDITS=rust-rounds=10000",
            "-e", f"DSBISECT={stand_in}",
            "plan", "--name", "/plans/local", *STEPS,
        ],
        env=os.environ | {"TMT_WORKDIR_ROOT": str(tmp_path / "tmt")},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    results = YAML(typ="safe", pure=True).load(run / "plans/local/execute/results.yaml")
    assert len(results) == 1, done.stderr
    return done.returncode, results[0], run / "plans/local/execute"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("status", "ended", "result"), [(0, 0, "pass"), (1, 1, "fail"), (3, 2, "error")]
)
def test_tmt_ends_as_the_answer_says(tmp_path: Path, status: int, ended: int, result: str) -> None:
    code, found, folder = run_plan(tmp_path, status)
    assert (code, found["result"]) == (ended, result)
    assert "an answer" not in found["note"]  # its last line is the page's path
    logs = [folder / name for name in found["log"]]
    assert [log.name for log in logs] == ["output.txt", "report.html"]
    assert all(log.is_file() for log in logs)
