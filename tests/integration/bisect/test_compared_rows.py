"""Two real servers under loads of the suite: which tells, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

from lab import dsbisect

from dsharness.errors import ExitCode


def test_two_rows_and_what_is_stored_is_told_again(lab: Path) -> None:
    asked = ("compare", "debian-11", "debian-12", "--workload", "bind-one", "--json")
    done = dsbisect(lab, *asked, "--output", str(lab / "report"), limit_s=900)
    assert done.returncode == ExitCode.NO, done.stderr
    answer = json.loads(done.stdout)
    (load,) = answer["loads"]
    assert load["boundary"]["direction"] == "slower"
    assert load["boundary"]["effect"] > 2
    assert (lab / "report" / "compare.md").read_text(encoding="utf-8").count("bind-one")
    again = dsbisect(lab, *asked, limit_s=600)
    assert json.loads(again.stdout)["loads"] == answer["loads"]
