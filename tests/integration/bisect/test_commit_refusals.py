"""What a search of commits refuses before it builds anything, and what it tells in advance."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commit_search import made
from lab import dsbisect
from seed_history import History, history_with_two_culprits, real_history

from dsharness.errors import ExitCode


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


def test_a_plan_builds_nothing_and_tells_all(lab: Path) -> None:
    history = made(lab, real_history)
    done = dsbisect(
        lab, "bisect", "commits", "--repo", str(history.folder),
        "--good", history.commits["import 3.1.2"], "--bad", "v-bad", "--plan", "--json",
    )  # fmt: skip
    forecast = json.loads(done.stdout)
    again = dsbisect(
        lab, "bisect", "commits", f"v-bad..{history.commits['import 3.1.2']}",
        "--repo", str(history.folder), "--plan", "--json",
    )  # fmt: skip
    swapped = json.loads(again.stdout)
    assert "they are swapped" in swapped.pop("notes")[0]
    assert swapped == {name: value for name, value in forecast.items() if name != "notes"}
    assert len(forecast["candidates"]) == 8
    assert forecast["commits"] == 14
    assert forecast["clean_builds"] == 2
    assert forecast["hours"] > 0
    assert not (lab / "results.db").exists()
