"""A search over commits of a server that shares nothing with 389-ds: BIND, from Debian's source."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bind_history import ROW, history
from debian_sources import debian_source
from lab import dsbisect, small_matrix

pytestmark = pytest.mark.whole


def test_the_slow_commit_of_another_server_is_found_and_proved(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    done = dsbisect(
        tmp_path, "bisect", "commits", "--repo", str(made.folder), "--workload", "dns-udp",
        "--good", made.commits["the source"], "--bad", "HEAD", "--output",
        str(tmp_path / "report"), "--json", limit_s=2400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    (culprit,) = findings["culprits"]
    assert [suspect["subject"] for suspect in culprit["suspects"]] == ["a sum for each query"]
    assert culprit["boundary"]["direction"] == "slower"
    assert [each["confirms"] for each in culprit["proof"]] == [True, True, True]
    assert [each["kinds"] for each in findings["equal"]] == [["docs"]]
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"password|scheme|rounds", page.partition("<body")[2])


def test_a_load_that_it_does_not_speak_is_refused(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    done = dsbisect(
        tmp_path, "bisect", "commits", "--repo", str(made.folder), "--workload", "bind-one",
        "--good", made.commits["the source"], "--bad", "HEAD", limit_s=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "dns-udp, dns-tcp, dns-schedule" in done.stderr
