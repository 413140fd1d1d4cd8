"""A real row under a light load and under more than it can do: the knee lies between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import dsbisect, small_matrix, start, stored_samples

from dsharness.errors import ExitCode

pytestmark = pytest.mark.whole

WORKLOAD = """\
workloads:
  - id: small
    title: "searches for one of 40 users"
    tool: ldapload
    threads: 2
    users: 40
    distinct_users: 40
    requests:
      - {filter: "(uid={user})", entries: 1}
    duration_s: 1.0
    most_s: 2.0
    operations: 500
"""


def test_the_knee_of_a_row_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    (tmp_path / "small.yaml").write_text(WORKLOAD, encoding="utf-8")
    words = (
        "measure",
        "levels",
        "debian-12",
        "--workload",
        "small.yaml",
        "--levels",
        "20,180",
        "--runs",
        "2",
    )
    begun = start(tmp_path, *words)
    begun.until("(2 of about")
    assert begun.end()[0] == ExitCode.INTERRUPTED
    before = stored_samples(tmp_path)
    assert before["small-closed"] >= 2

    done = dsbisect(tmp_path, *words, "--output", "out", "--json")
    assert "resuming small-closed" in done.stderr
    if done.returncode == ExitCode.INCONCLUSIVE:  # another test has the CPUs, which is told
        assert "waited for a CPU that other programs had" in done.stdout + done.stderr
        return
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (row,) = found["rows"]
    low, high = row["levels"]
    assert low["asked_per_s"] == pytest.approx(row["capacity_per_s"] / 5, rel=0.01)
    assert low["reached_per_s"] >= 0.97 * low["asked_per_s"]
    assert high["asked_per_s"] == pytest.approx(row["capacity_per_s"] * 1.8, rel=0.01)
    assert high["reached_per_s"] < 0.97 * high["asked_per_s"]
    assert (low["runs"], high["runs"]) >= (2, 2)
    assert [row["knee"][end] for end in ("above_per_s", "at_most_per_s")] == [
        low["asked_per_s"], high["asked_per_s"],
    ]  # fmt: skip
    assert row["half"] == low
    assert 0 < low["cpus"] < high["cpus"] < 1.1
    assert found["connections"] >= 4 * 1.8 * 2 * 0.8  # Little's law, of two in a closed loop
    assert [each["percent"] for each in low["percentiles"]][:2] == [50, 90]
    assert low["percentiles"][0]["us"] < high["percentiles"][0]["us"]

    after = stored_samples(tmp_path)
    again = dsbisect(tmp_path, *words, "--output", "out")
    assert again.returncode == 0, again.stderr
    assert stored_samples(tmp_path) == after
    lines = again.stdout.rstrip().splitlines()
    assert lines[-1] == "out/levels.html"
    assert f"knee between {low['asked_per_s']:g}" in again.stdout.replace(",", "")
    page = (tmp_path / "out/levels.html").read_text(encoding="utf-8")
    assert page.count("<polyline") == 3  # p50, p99 and the knee
