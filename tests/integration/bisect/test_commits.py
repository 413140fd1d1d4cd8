"""The culprit of a real history of the real 389-ds, with real builds, servers and loads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from commit_search import blamed, made, search
from lab import argv, dsbisect, environment
from seed_history import History, history_with_gap, real_history

from benchmarks.upstream import KnownSearch, judged
from dsharness.errors import ExitCode
from dsresults.commits_result import CommitFindings


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

    log = dsbisect(lab, "show", "steps", "--json")
    (lab / "log.jsonl").write_text(log.stdout, encoding="utf-8")
    replayed = dsbisect(lab, "show", "again", str(lab / "log.jsonl"), "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert [each["same"] for each in json.loads(replayed.stdout)] == [True] * 4


def test_git_bisect_run_with_judge(lab: Path) -> None:
    """Git's own search in an ordinary clone, typed as docs/bisecting.md has it."""
    history = made(lab, real_history)
    clone, good = lab / "clone", history.commits["test the password policy"]
    git(lab, "clone", "--quiet", f"file://{history.folder}", str(clone))
    git(clone, "bisect", "start", "v-bad", good)
    judge = argv("judge", "--workload", "bind-random", "--incremental")
    said = git(clone, "bisect", "run", *judge, env=environment(lab))
    assert f"{history.commits['more rounds by default']} is the first bad commit" in said


@pytest.mark.whole
def test_judge_skips_what_does_not_build(lab: Path) -> None:
    history = made(lab, history_with_gap)
    commits = history.commits
    done = dsbisect(
        lab, "judge", commits["break the build"], "--repo", str(history.folder),
        "--good", commits["import 3.1.2"], "--bad", commits["docs again"], "--incremental",
        limit_s=900,
    )  # fmt: skip
    assert done.returncode == ExitCode.SKIP, done.stderr


def git(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env=env, text=True, check=False, capture_output=True,
        timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def history_name(history: History, candidate: str) -> str:
    return next(name for name, commit in history.commits.items() if commit.startswith(candidate))


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file, git's own among them, with its size and time."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}
