"""Culprits where a history is no plain line: gaps, merges, repairs, two culprits, none.

Real histories of the real 389-ds, with real builds, servers and loads.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from commit_search import blamed, made, search
from lab import dsbisect, start
from seed_history import (
    history_to_repair,
    history_with_gap,
    history_with_side_culprit,
    history_with_two_culprits,
)

from dsharness.errors import ExitCode

pytestmark = pytest.mark.whole


def test_a_commit_that_mends_the_build_is_not_blamed_alone(lab: Path) -> None:
    history = made(lab, history_with_gap)
    findings = search(lab, history, "import 3.1.2", "main", "--no-proof")
    # Neither can be told from the others: what lies between does not build.
    assert blamed(findings) == [["break the build", "docs", "fix the build, more rounds"]]
    (why,) = findings["whole"]["unmeasured"].values()
    assert "unbuildable" in why
    assert "pw.c" in why
    assert "log:" in why


def test_a_culprit_inside_a_merged_branch(lab: Path) -> None:
    history = made(lab, history_with_side_culprit)
    findings = search(lab, history, "import 3.1.2", "main", "--no-proof", "--backports")
    assert blamed(findings) == [["side: more rounds"]]
    (culprit,) = findings["culprits"]
    assert culprit["suspects"][0]["equivalents"] == [history.commits["stable: more rounds"]]
    (backport,) = culprit["backports"]
    assert (backport["outcome"], backport["confirms"]) == ("slower", True)


def test_a_known_repair_is_picked_onto_what_does_not_build(lab: Path) -> None:
    history = made(lab, history_to_repair)
    findings = search(
        lab, history, "import 3.1.2", "more rounds", "--no-proof",
        "--fix", history.commits["fix the build"],
    )  # fmt: skip
    assert blamed(findings) == [["more rounds"]]
    assert findings["whole"]["unmeasured"] == {}


def test_two_culprits_are_both_named(lab: Path) -> None:
    history = made(lab, history_with_two_culprits)
    first = search(lab, history, "import 3.1.2", "main", "--no-proof")
    assert len(blamed(first)) == 1
    assert first["left"]
    both = search(lab, history, "import 3.1.2", "main", "--no-proof", "--all")
    assert sorted(blamed(both)) == [["many more rounds"], ["some more rounds"]]
    assert both["campaigns"][0] == first["campaigns"][0]  # it went on from the first answer


def test_no_culprit_at_all(lab: Path) -> None:
    history = made(lab, history_with_gap)
    asked = ("--no-proof", "--smallest", "25")
    findings = search(lab, history, "import 3.1.2", "one function", *asked)
    assert findings["culprits"] == []
    assert findings["whole"]["direction"] == "none"
    assert findings["whole"]["summary"].startswith("no difference of ")


def test_a_search_goes_on_after_ctrl_c(lab: Path) -> None:
    history = made(lab, history_with_two_culprits)
    asked = [
        "bisect", "commits", "--repo", str(history.folder),
        "--good", history.commits["import 3.1.2"],
        "--bad", history.commits["some more rounds"], "--no-proof",
        "--workload", "bind-random", "--output", str(lab / "report"),
    ]  # fmt: skip
    running = start(lab, *asked)
    running.until("turn 1:")
    status, said = running.end()
    assert status == ExitCode.INTERRUPTED, said
    again = dsbisect(lab, *asked, limit_s=1200)
    assert again.returncode == 0, again.stderr
    assert "resuming bind-random" in again.stderr
    assert "some more rounds" in again.stdout
