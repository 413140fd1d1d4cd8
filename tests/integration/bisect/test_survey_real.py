"""A survey of real tags: of which one does not configure, one ends at its start, and one serves."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from debian_sources import debian_source
from lab import dsbisect, environment, start
from seed_history import start as import_source
from small_pasts import LACKS, MAKEFILE, begin, matrix_with

from dsharness.errors import ExitCode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    matrix_with(tmp_path, "debian-13")
    past = begin(tmp_path / "repo")
    # The result of a source is kept by its content, also for the next run of this test.
    past.commit("one of this run only", {"Makefile.am": f"{MAKEFILE}# {uuid.uuid4()}\n"})
    past.tag("389-ds-base-3.1.9")
    past.commit("one that lacks something", {"configure.ac": LACKS})
    past.tag("389-ds-base-3.1.10", annotated=True)
    return tmp_path


def arguments(folder: Path) -> list[str]:
    return ["build", "survey", "--repo", str(folder / "repo")]


def lines(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)
    return found


def test_failures_are_lines_and_a_ctrl_c_loses_none(folder: Path) -> None:
    first = start(folder, *arguments(folder))
    first.until("389-ds-base-3.1.10 (debian-13): configure")
    status, _ = first.end()
    assert status == ExitCode.INTERRUPTED

    done = dsbisect(folder, *arguments(folder), "--json")
    assert done.returncode == 0, done.stderr
    assert "2 tags: 1 to try, 1 known already" in done.stderr
    lacking, ending = lines(done.stdout)
    assert (lacking["tag"], ending["tag"]) == ("389-ds-base-3.1.10", "389-ds-base-3.1.9")
    assert lacking["known"]
    assert not lacking["outcome"]["built"]
    assert "no such feature" in lacking["outcome"]["why_not"]
    assert ending["outcome"]["built"]
    assert not ending["outcome"]["starts"]
    assert "it ended with status 4" in ending["outcome"]["why_not"]
    assert "EMERG - main - no such backend" in ending["outcome"]["why_not"]

    again = dsbisect(folder, *arguments(folder))
    assert "0 to try, 2 known already" in again.stderr
    assert "none of 2 tags can be measured" in again.stdout
    assert len(again.stderr.splitlines()) == 1, "nothing is done again"


def test_a_real_source_can_be_measured(tmp_path: Path) -> None:
    matrix_with(tmp_path, "debian-13")
    (tmp_path / "repo").mkdir()
    history = import_source(tmp_path / "repo", debian_source("debian-13"))
    history.git("tag", "389-ds-base-3.1.2")
    done = dsbisect(tmp_path, *arguments(tmp_path), "--json", limit_s=2400)
    assert done.returncode == 0, done.stderr
    (found,) = lines(done.stdout)
    assert found["toolchain"] == "debian-13"
    assert found["outcome"] | {"seconds": 0} == {
        "built": True, "starts": True, "binds": True, "why_not": "", "seconds": 0, "log": "",
    }  # fmt: skip


def test_a_wrong_question_is_answered_at_once(folder: Path) -> None:
    for wrong in (["build", "make"], ["build", "survey", "debian-13"], ["build", "survey"]):
        assert dsbisect(folder, *wrong).returncode == ExitCode.USAGE
    none = dsbisect(folder, *arguments(folder), "--tags", "v*")
    assert none.returncode == ExitCode.SOURCE
    assert environment(folder)["DSBISECT_MATRIX"]
