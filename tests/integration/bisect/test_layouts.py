"""By how much builds of one real source differ: the same objects, linked in two orders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from debian_sources import debian_source
from lab import dsbisect, small_matrix
from seed_history import start

from dsresults.store import Store

pytestmark = pytest.mark.whole


def test_doctor_measures_builds_of_one_commit(tmp_path: Path) -> None:
    small_matrix(tmp_path, users=40)
    folder = tmp_path / "repo"
    folder.mkdir()
    history = start(folder, debian_source("debian-13"))
    question = ("--layouts", "2", "--repo", str(folder), "--workload", "bind-random")
    done = dsbisect(tmp_path, "doctor", *question, "--runs", "4", "--json", limit_s=2400)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["builds"], seen["runs"]) == (2, 8)
    low, high = seen["interval_pct"]
    assert 0 <= low <= seen["scatter_pct"] <= high
    assert seen["noise_pct"] > 0
    with Store.open(f"sqlite:///{tmp_path}/results.db") as store:
        (campaign,) = store.campaigns()
        samples = store.samples(campaign_id=campaign.id)
    commit = history.commits["import 3.1.2"][:12]
    assert {sample.candidate_id for sample in samples} == {
        f"{commit}-layout-1", f"{commit}-layout-2"
    }  # fmt: skip
    assert len({sample.image_key for sample in samples}) == 2
