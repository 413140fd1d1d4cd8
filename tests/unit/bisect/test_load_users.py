"""The locustfile, run by Locust with a worker that has much to say at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsbisect.load_study import BEGUN, LOCUSTFILE, PLAN_VARIABLE, LoadPlan, PlannedWorker

ENDED = "ended before its time"
SECONDS = 5.0
# As on a busy machine: answers took from 0.2 to 260 ms.
TIMES_US = [*range(200, 2048), *(n << shift for shift in range(1, 8) for n in range(1024, 2048))]


def said(seconds: float) -> str:
    times = "".join(f"time query {us} 1\n" for us in TIMES_US)
    head = f"operations {len(TIMES_US)}\nseconds {seconds}\ncpu 1\nstarved 1\n"
    second = f"now operations {len(TIMES_US)}\n" + times.replace("time", "now time") + "now over\n"
    return f"{second}{head}{times}finished\nload ended with status 0\n"


@pytest.mark.parametrize(("seconds", "early"), [(SECONDS, False), (SECONDS / 2, True)])
def test_a_worker_that_says_much_has_not_ended_early(
    tmp_path: Path, seconds: float, early: bool
) -> None:
    (tmp_path / "says").write_text(said(seconds))
    worker = PlannedWorker(
        name="worker 1", argv=("cat", str(tmp_path / "says")), stop=("true",),
        said=str(tmp_path / "said"),
    )  # fmt: skip
    plan = LoadPlan(
        server="a server", tool="dnsload", workers=(worker,), seconds=SECONDS, limit_s=30,
        cpus=(), environment={},
    )  # fmt: skip
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    done = subprocess.run(
        [Path(sys.executable).with_name("locust"), "-f", LOCUSTFILE, "-u", "1", "--headless",
         "--only-summary", "--exit-code-on-error", "0"],
        env={**os.environ, PLAN_VARIABLE: str(tmp_path / "plan.json")}, cwd=tmp_path,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert BEGUN in done.stdout
    assert (ENDED in done.stdout) is early
    assert (tmp_path / "said").read_text().startswith(said(seconds))
