"""A real row on directories of two sizes: what looks at every entry grows, an index does not."""

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
      - {{filter: "{filter}", entries: 1}}
    duration_s: 0.5
    most_s: 1.0
    operations: 50
"""


def test_what_looks_at_every_entry_grows_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    every, indexed = "(!(!(uid={user})))", "(uid={user})"
    words = (
        "measure",
        "sizes",
        "debian-12",
        "--sizes",
        "1000,200",
        "--runs",
        "3",
        "--output",
        "out",
    )
    (tmp_path / "every.yaml").write_text(WORKLOAD.format(filter=every), encoding="utf-8")
    (tmp_path / "indexed.yaml").write_text(WORKLOAD.format(filter=indexed), encoding="utf-8")

    begun = start(tmp_path, *words, "--workload", "every.yaml")
    begun.until("workload small-1000")
    begun.until("debian-12:")
    assert begun.end()[0] == ExitCode.INTERRUPTED
    before = stored_samples(tmp_path)
    assert before["small-200"] >= 3

    done = dsbisect(tmp_path, *words, "--workload", "every.yaml", "--json")
    assert done.returncode == 0, done.stderr
    assert "resuming small-200" in done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert [each["users"] for each in row["points"]] == [200, 1000]
    assert all(each["runs"] >= 3 for each in row["points"])
    low, high = row["exponent"]["interval"]
    assert 0.5 < row["exponent"]["value"] < 1.5  # about in proportion
    assert low <= row["exponent"]["value"] <= high
    assert stored_samples(tmp_path)["small-200"] == before["small-200"]

    after = stored_samples(tmp_path)
    again = dsbisect(tmp_path, *words, "--workload", "every.yaml")
    assert again.returncode == 0, again.stderr
    assert stored_samples(tmp_path) == after
    assert again.stdout.rstrip().splitlines()[-1] == "out/sizes.html"
    page = (tmp_path / "out/sizes.html").read_text(encoding="utf-8")
    assert page.count("<polyline") == 1

    done = dsbisect(tmp_path, *words, "--workload", "indexed.yaml", "--json")
    # of so few runs while other tests run the interval may be too wide to tell
    assert done.returncode in {ExitCode.OK, ExitCode.INCONCLUSIVE}, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert abs(row["exponent"]["value"]) < 0.3


def test_a_row_that_cannot_be_made_is_told_and_the_other_answers(tmp_path: Path) -> None:
    small_matrix(tmp_path, **{"debian-12": {"389-ds": "2.3.99"}})
    load = WORKLOAD.format(filter="(uid={user})")
    (tmp_path / "indexed.yaml").write_text(load, encoding="utf-8")
    done = dsbisect(
        tmp_path, "measure", "sizes", "debian-12", "debian-13", "--sizes", "200,1000",
        "--runs", "2", "--workload", "indexed.yaml", "--json",
    )  # fmt: skip
    assert done.returncode == ExitCode.INCONCLUSIVE, done.stderr
    unmade, made = json.loads(done.stdout)["rows"]
    assert made["exponent"] is not None
    assert all("2.3.99" in each["note"] for each in unmade["points"])
