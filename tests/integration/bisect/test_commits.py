"""Culprits found in real histories of the real 389-ds, with real builds, servers and loads.

Builds and golden states are found again by content: the first run on a machine takes as long as
the compiler does.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from debian_sources import debian_source
from lab import dsbisect, small_matrix, start
from seed_history import (
    History,
    history_to_repair,
    history_with_gap,
    history_with_side_culprit,
    history_with_two_culprits,
    real_history,
)

from benchmarks.upstream import KnownSearch, judged
from dsharness.errors import ExitCode
from dsresults.commits_result import CommitFindings

USERS = 40  # Rust schemes remember nothing, so few users cost as much as many
Make = Callable[[Path, Path], History]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    small_matrix(tmp_path, users=USERS)
    return tmp_path


def made(lab: Path, make: Make) -> History:
    folder = lab / "repo"
    folder.mkdir()
    return make(folder, debian_source("debian-13"))


def search(lab: Path, history: History, good: str, bad: str, *args: str) -> dict[str, Any]:
    """The findings as JSON, and where the report is."""
    names = (history.commits.get(name, name) for name in (good, bad))
    begin, end = names
    done = dsbisect(
        lab, "bisect", "commits", "--repo", str(history.folder), "--good", begin, "--bad", end,
        "--workload", "bind-random", "--output", str(lab / "report"), "--json", *args,
        limit_s=2400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def blamed(findings: dict[str, Any]) -> list[list[str]]:
    return [
        [suspect["subject"] for suspect in culprit["suspects"]] for culprit in findings["culprits"]
    ]


def test_the_culprit_of_a_real_history_is_found_and_proved(lab: Path) -> None:
    history = made(lab, real_history)
    before = state_of(history.folder)
    findings = search(lab, history, "import 3.1.2", "v-bad")
    assert blamed(findings) == [["more rounds by default"]]
    assert state_of(history.folder) == before  # the user's repository is only ever read
    (culprit,) = findings["culprits"]
    assert culprit["boundary"]["direction"] == "slower"
    assert 3 < culprit["boundary"]["effect"] < 20  # ten times the rounds
    (suspect,) = culprit["suspects"]
    assert suspect["hash"] == history.commits["more rounds by default"]
    assert suspect["link"].endswith(f"/389ds/389-ds-base/commit/{suspect['hash']}")
    (release,) = suspect["releases"]  # v-bad is no release of the product
    assert (release["series"], release["first"]) == ("main", None)
    known = KnownSearch(
        name="rounds", range="", workload="bind-random", answer="slower", commit=suspect["hash"]
    )
    assert judged(known, CommitFindings.model_validate_json(json.dumps(findings)), 0).wrong == ""
    spent = findings["spent"]
    assert 0 < spent["runs_s"] < findings["seconds"]
    assert 0 < spent["named_s"] < spent["proved_s"] <= findings["seconds"]
    parts = sum(spent[f"{each}_s"] for each in ("builds", "fills", "runs", "rest"))
    assert parts == pytest.approx(findings["seconds"], abs=0.5)
    clean, without, applied = culprit["proof"]
    assert all(build["clean"] for build in clean["builds"])
    assert [each["confirms"] for each in (clean, without, applied)] == [True, True, True]
    assert without["outcome"] == "faster"
    assert applied["outcome"] == "slower"
    equal = {history_name(history, each["candidate"]): each["kinds"] for each in findings["equal"]}
    assert equal == {
        "import 3.1.2": ["docs", "web UI"],
        "a function nobody calls": ["tests"],
        "fix the build": ["docs"],
        "a Rust function nobody calls": ["web UI"],
    }
    page = (lab / "report" / "report.html").read_text(encoding="utf-8")
    assert "more rounds by default" in page
    assert "from nothing" in page

    log = dsbisect(lab, "log", "--json")
    (lab / "log.jsonl").write_text(log.stdout, encoding="utf-8")
    replayed = dsbisect(lab, "replay", str(lab / "log.jsonl"), "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert [each["same"] for each in json.loads(replayed.stdout)] == [True] * 4


@pytest.mark.whole
def test_a_commit_that_mends_the_build_is_not_blamed_alone(lab: Path) -> None:
    history = made(lab, history_with_gap)
    findings = search(lab, history, "import 3.1.2", "main", "--no-proof")
    # Neither can be told from the others: what lies between does not build.
    assert blamed(findings) == [["break the build", "docs", "fix the build, more rounds"]]
    (why,) = findings["whole"]["unmeasured"].values()
    assert "unbuildable" in why
    assert "pw.c" in why
    assert "log:" in why


@pytest.mark.whole
def test_a_culprit_inside_a_merged_branch(lab: Path) -> None:
    history = made(lab, history_with_side_culprit)
    findings = search(lab, history, "import 3.1.2", "main", "--no-proof", "--backports")
    assert blamed(findings) == [["side: more rounds"]]
    (culprit,) = findings["culprits"]
    assert culprit["suspects"][0]["equivalents"] == [history.commits["stable: more rounds"]]
    (backport,) = culprit["backports"]
    assert (backport["outcome"], backport["confirms"]) == ("slower", True)


@pytest.mark.whole
def test_a_known_repair_is_picked_onto_what_does_not_build(lab: Path) -> None:
    history = made(lab, history_to_repair)
    findings = search(
        lab, history, "import 3.1.2", "more rounds", "--no-proof",
        "--fix", history.commits["fix the build"],
    )  # fmt: skip
    assert blamed(findings) == [["more rounds"]]
    assert findings["whole"]["unmeasured"] == {}


@pytest.mark.whole
def test_two_culprits_are_both_named(lab: Path) -> None:
    history = made(lab, history_with_two_culprits)
    findings = search(lab, history, "import 3.1.2", "main", "--no-proof")
    assert sorted(blamed(findings)) == [["many more rounds"], ["some more rounds"]]


@pytest.mark.whole
def test_no_culprit_at_all(lab: Path) -> None:
    history = made(lab, history_with_gap)
    asked = ("--no-proof", "--smallest", "25")
    findings = search(lab, history, "import 3.1.2", "one function", *asked)
    assert findings["culprits"] == []
    assert findings["whole"]["direction"] == "none"
    assert "smallest drop this run could have seen" in findings["whole"]["summary"]


def test_git_bisect_run_with_judge(lab: Path) -> None:
    """Git's own search, with the lab as its judge; the broken commit is skipped."""
    history = made(lab, history_with_gap)
    commits = history.commits
    for name, status in [
        ("one function", 0),
        ("break the build", 125),
        ("fix the build, more rounds", 1),
        ("docs again", 1),
    ]:
        done = dsbisect(
            lab, "judge", commits[name], "--repo", str(history.folder),
            "--good", commits["import 3.1.2"],
            "--bad", commits["docs again"], "--incremental", limit_s=900,
        )  # fmt: skip
        assert done.returncode == status, (name, done.stderr)


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("mian", "import 3.1.2", "perhaps you meant main"),
        ("import 3.1.2", "import 3.1.2", "same commit"),
        ("import 3.1.2", "mainn", "main"),
    ],
)
def test_wrong_ends_are_one_clear_error(lab: Path, good: str, bad: str, said: str) -> None:
    history = made(lab, history_with_two_culprits)
    done = dsbisect(
        lab, "bisect", "commits", "--repo", str(history.folder),
        "--good", history.commits.get(good, good), "--bad", history.commits.get(bad, bad),
    )  # fmt: skip
    assert done.returncode == ExitCode.SOURCE
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_shallow_clone_says_what_to_fetch(lab: Path) -> None:
    history = made(lab, history_with_two_culprits)
    shallow = lab / "shallow"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "2", f"file://{history.folder}", str(shallow)],
        check=True,
    )
    done = dsbisect(
        lab, "bisect", "commits", "--repo", str(shallow),
        "--good", history.commits["import 3.1.2"], "--bad", "main",
    )  # fmt: skip
    assert done.returncode == ExitCode.SOURCE
    assert "git fetch --unshallow" in done.stderr


def test_a_repository_of_something_else(lab: Path) -> None:
    other = lab / "other"
    other.mkdir()
    history = History(other)
    history.git("init", "--quiet")
    history.commit("one", docs=lambda _: "one\n")
    history.commit("two", docs=lambda _: "two\n")
    done = dsbisect(
        lab, "bisect", "commits", "--repo", str(other), "--good", "main~1", "--bad", "main"
    )
    assert done.returncode == ExitCode.SOURCE
    assert "not a source of 389-ds" in done.stderr


def test_a_dry_run_builds_nothing_and_tells_all(lab: Path) -> None:
    history = made(lab, real_history)
    done = dsbisect(
        lab, "bisect", "commits", "--repo", str(history.folder),
        "--good", history.commits["import 3.1.2"], "--bad", "v-bad", "--dry-run", "--json",
    )  # fmt: skip
    forecast = json.loads(done.stdout)
    again = dsbisect(
        lab, "bisect", "commits", f"v-bad..{history.commits['import 3.1.2']}",
        "--repo", str(history.folder), "--dry-run", "--json",
    )  # fmt: skip
    swapped = json.loads(again.stdout)
    assert "they are swapped" in swapped.pop("notes")[0]
    assert swapped == {name: value for name, value in forecast.items() if name != "notes"}
    assert len(forecast["candidates"]) == 8
    assert forecast["commits"] == 14
    assert forecast["clean_builds"] == 2
    assert forecast["hours"] > 0
    assert not (lab / "results.db").exists()


def history_name(history: History, candidate: str) -> str:
    return next(name for name, commit in history.commits.items() if commit.startswith(candidate))


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file, git's own among them, with its size and time."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


@pytest.mark.whole
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
