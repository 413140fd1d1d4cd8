"""Searches in histories of the real 389-ds: made, asked, and what they blame.

Builds and golden states are found again by content: the first run on a machine takes as long as
the compiler does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from debian_sources import debian_source
from lab import dsbisect
from seed_history import History

USERS = 40  # Rust schemes remember nothing, so few users cost as much as many
Make = Callable[[Path, Path], History]


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
