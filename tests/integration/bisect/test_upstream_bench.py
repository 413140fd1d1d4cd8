"""The benchmark of upstream's history, on a small one whose servers all end at their start."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from lab import ROOT, environment
from small_pasts import MAKEFILE, begin, matrix_with

pytestmark = pytest.mark.whole


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    matrix_with(tmp_path, "debian-13")
    past = begin(tmp_path / "repo")
    for number in ("3.1.8", "3.1.9"):
        past.commit(number, {"Makefile.am": f"{MAKEFILE}# {uuid.uuid4()}\n"})
        past.tag(f"389-ds-base-{number}")
    questions = {
        "survey": ["389-ds-base-3.1.9"],
        "searches": [{
            "name": "ends", "range": "3.1.8..3.1.9", "workload": "bind-one", "answer": "slower",
            "commit": past["3.1.9"],
        }],
    }  # fmt: skip
    (tmp_path / "questions.yaml").write_text(json.dumps(questions), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
def test_what_cannot_be_measured_is_wrong_and_in_the_tables(folder: Path, fresh: list[str]) -> None:
    done = subprocess.run(
        [
            sys.executable, ROOT / "benchmarks" / "upstream.py", folder / "repo", *fresh,
            "--data", folder / "questions.yaml", "--output", folder / "runs",
        ],
        cwd=folder, env=environment(folder), text=True, check=False, capture_output=True,
        timeout=1200,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "survey: 0 of 1 tags can be measured" in done.stdout
    assert "ends: wrong (" in done.stdout
    assert "| ends | `3.1.8..3.1.9` | bind-one |" in done.stdout
    assert "| 389-ds-base-3.1.9 | no: debian-12: " in done.stdout
    assert "no such backend" in done.stdout
    assert "Traceback" not in done.stderr
    kept = {path.name for path in (folder / "runs").iterdir()}
    assert {"survey.json", "ends.json"} <= kept
    assert ("dsbisect.db" in kept) is (not fresh)
