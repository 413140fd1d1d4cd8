"""What every metric varies by, in the lab's own turns, as `dsbisect doctor --noise` tells it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dsbisect.noise_study import MetricNoise


def deciders(row: str, workload: str, runs: int) -> Mapping[str, MetricNoise]:
    """Measure the row against itself, so many runs a side, in a store of its own."""
    program = Path(sys.executable).parent / "dsbisect"
    with tempfile.TemporaryDirectory() as folder:
        words = (
            "doctor", "--noise", "--row", row, "--workload", workload, "--runs", str(runs),
            "--json", "--store", f"{folder}/store.db",
        )  # fmt: skip
        done = subprocess.run([program, *words], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found = [MetricNoise.model_validate(each) for each in json.loads(done.stdout)["metrics"]]
    return {each.metric: each for each in found}
