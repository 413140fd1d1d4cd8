"""Debian 12 to 13, attributed: real servers verify what the other one stored."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path

import pytest
from lab import dsbisect, small_matrix

ASKED = ("explain", "debian-12", "debian-13", "--workload", "bind-one", "--runs", "3", "--json")
LIMIT = "nsslapd-idlistscanlimit"  # of candidates of a search


@pytest.mark.whole
def test_the_stored_rounds_explain_more_than_all_of_it(tmp_path: Path) -> None:
    small_matrix(tmp_path, users=20)
    done = dsbisect(tmp_path, *ASKED, limit_s=1200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (bind,) = found["workloads"]
    shares = {each["factor"]: each for each in bind["shares"]["shares"]}
    stored, server = shares["stored"], shares["server"]
    assert stored["percent"] > 100, "10,000 rounds became 100,000"
    assert 5 < stored["ratio"]["value"] < 20
    assert server["ratio"]["value"] < 1, "OpenSSL 3.5 needs less for a round"
    total = bind["shares"]["total"]["value"]
    assert stored["ratio"]["value"] * server["ratio"]["value"] == pytest.approx(total)
    assert math.isclose(bind["shares"]["unexplained"], 1)
    assert {arm["name"] for arm in bind["arms"]} == {
        "debian-12", "debian-12-with-stored-of-debian-13",
        "debian-13-with-stored-of-debian-12", "debian-13",
    }  # fmt: skip
    assert all(arm["runs"] == 3 for arm in bind["arms"])
    assert found["impossible"] == {}
    assert "10 times the rounds" in bind["meanings"]["stored"][0]
    changed = {each["name"].split(" ")[0]: each for each in found["configuration"]}
    assert (changed[LIMIT]["fast"], changed[LIMIT]["slow"]) == ("4000", "2147483646")
    assert "nsslapd-rootpw" not in changed

    again = dsbisect(tmp_path, *ASKED)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["workloads"] == found["workloads"], "the stored runs count"
    listed = dsbisect(tmp_path, "list", "answers", "--json")
    findings = [each for each in json.loads(listed.stdout) if each["samples"] is None]
    assert len(findings) == 1

    if os.geteuid() == 0 and shutil.which("perf"):  # else it refuses, which unit tests see
        seen = dsbisect(tmp_path, *ASKED, "--profile", limit_s=1200)
        assert seen.returncode == 0, seen.stderr
        (bind,) = json.loads(seen.stdout)["workloads"]
        assert bind["unprofiled"] == []
        counts = {each["function"]: each for each in bind["instructions"]}
        final = counts["SHA512_Final"]
        assert 8 < final["after"] / final["before"] < 12, "ten times the rounds"
        assert any("SHA512" in each["function"] for each in bind["functions"])
        assert {each["operation"] for each in bind["times"]} >= {"bind"}
