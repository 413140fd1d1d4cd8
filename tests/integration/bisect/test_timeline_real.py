"""Releases of a real history of the real 389-ds are built and measured; the step is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commit_search import made
from lab import dsbisect
from seed_history import real_history

pytestmark = pytest.mark.whole

RELEASES = {
    "3.1.2": "import 3.1.2",
    "3.1.3": "merge side",
    "3.2.0": "more rounds by default",
}


def test_the_release_that_made_binds_slower_is_named(lab: Path) -> None:
    history = made(lab, real_history)
    for name, commit in RELEASES.items():
        history.git("tag", f"389-ds-base-{name}", history.commits[commit])
    words = ("timeline", "3.1.2..3.2.0", "--repo", str(history.folder), "--workload", "bind-random")
    done = dsbisect(lab, *words, "--output", str(lab / "page"), "--json", limit_s=2400)
    assert done.returncode == 0, done.stderr
    (load,) = json.loads(done.stdout)["loads"]
    directions = {
        tuple(part["boundary"]["line"]): part["boundary"]["direction"] for part in load["stretches"]
    }
    assert directions == {("3.1.2", "3.2.0"): "slower", ("3.1.2", "3.1.3"): "none"}
    assert set(load["medians"]) == set(RELEASES)
    page = (lab / "page" / "timeline.html").read_text(encoding="utf-8")
    assert "3.1.2 to 3.2.0" in page

    again = dsbisect(lab, *words, "--output", str(lab / "page"), "--json", limit_s=300)
    assert json.loads(again.stdout) == json.loads(done.stdout)  # without a run
