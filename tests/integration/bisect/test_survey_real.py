"""A survey of real sources: one does not configure, one ends at its start, and one serves."""

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
from dsharness.products.seen_builds import SeenBuilds
from dsharness.yaml_files.shape import read_checked

# Whichever source is tried first, the other one is not yet ready when the first one's line is read.
LACKS_LATE = LACKS.replace("AC_MSG_ERROR", "sleep 15\nAC_MSG_ERROR")
# What it installs is made of a document, by a name that nobody sees.
READS = f"{MAKEFILE}all-local:\n\tcat $(srcdir)/docs/*.css > page\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    matrix_with(tmp_path, "debian-13")
    past = begin(tmp_path / "repo")
    # The result of a source is kept by its content, also for the next run of this test.
    past.commit("one of this run only", {"Makefile.am": f"{MAKEFILE}# {uuid.uuid4()}\n"})
    past.tag("389-ds-base-3.1.9")
    past.commit("one that lacks something", {"configure.ac": LACKS_LATE})
    past.tag("389-ds-base-3.1.10", annotated=True)
    return tmp_path


def arguments(folder: Path) -> list[str]:
    return ["build", "survey", "--repo", str(folder / "repo")]


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.whole
def test_failures_are_lines_and_a_ctrl_c_loses_none(folder: Path) -> None:
    first = start(folder, *arguments(folder), "--jobs", "1")
    first.until("  debian-12")  # whichever is tried first
    status, _ = first.end()
    assert status == ExitCode.INTERRUPTED

    done = dsbisect(folder, *arguments(folder), "--json", "--table", str(folder / "table.md"))
    assert done.returncode == 0, done.stderr
    assert "2 lines: 1 to try, 1 known already" in done.stderr
    whole = document(done.stdout)
    lacking, ending = whole["results"]
    assert (lacking["source"], ending["source"]) == ("389-ds-base-3.1.10", "389-ds-base-3.1.9")
    assert lacking["known"] != ending["known"]
    assert not lacking["outcome"]["built"]
    assert "no such feature" in lacking["outcome"]["why_not"]
    assert lacking["outcome"]["every_file"] == "fails alike with every file"
    assert ending["outcome"]["built"]
    assert not ending["outcome"]["starts"]
    assert "it ended with status 4" in ending["outcome"]["why_not"]
    assert "EMERG - main - no such backend" in ending["outcome"]["why_not"]
    figures = {name: whole[name] for name in ("sources", "built", "answer", "broken_in_themselves")}
    assert figures == {"sources": 2, "built": 1, "answer": 0, "broken_in_themselves": 1}
    assert "| 389-ds-base-3.1.10 | debian-12 |" in (folder / "table.md").read_text()

    again = dsbisect(folder, *arguments(folder))
    assert "0 to try, 2 known already" in again.stderr
    assert "none of 2 sources can be measured; 1 broken in themselves" in again.stdout
    assert len(again.stderr.splitlines()) == 1, "nothing is done again"


@pytest.mark.whole
def test_another_toolchain_is_tried_where_the_first_fails(tmp_path: Path) -> None:
    """It wants a file of its own documents that a build is not given: every file shows it."""
    matrix_with(tmp_path, "debian-13", "debian-12")
    past = begin(tmp_path / "repo")
    past.commit(
        "reads a document", {"Makefile.am": READS, "docs/page.css": f"/* {uuid.uuid4()} */"}
    )
    past.tag("389-ds-base-3.1.9")
    done = dsbisect(tmp_path, *arguments(tmp_path), "--json", limit_s=1200)
    assert done.returncode == 0, done.stderr
    (found,) = document(done.stdout)["results"]
    assert found["toolchain"] == "debian-12"
    assert [each["toolchain"] for each in found["before"]] == ["debian-13"]
    assert found["outcome"]["every_file"] == "builds with every file"


@pytest.mark.whole
def test_a_real_source_can_be_measured(tmp_path: Path) -> None:
    matrix_with(tmp_path, "debian-13")
    (tmp_path / "repo").mkdir()
    history = import_source(tmp_path / "repo", debian_source("debian-13"))
    history.git("tag", "389-ds-base-3.1.2")
    known = tmp_path / "seen_builds.yaml"
    asked = [*arguments(tmp_path), "HEAD", "--json", "--knowledge", str(known)]
    done = dsbisect(tmp_path, *asked, limit_s=2400)
    assert done.returncode == 0, done.stderr
    (found,) = document(done.stdout)["results"]
    assert (found["source"], found["toolchain"], found["version"]) == ("HEAD", "debian-13", "3.1.2")
    assert found["shows"] == ["lmdb"]
    outcome = found["outcome"]
    assert (outcome["built"], outcome["starts"], outcome["answers"]) == (True, True, True)
    assert outcome["facts"]["password-scheme"] == "PBKDF2-SHA512"
    assert outcome["facts"]["password-rounds"] == 10_000
    (span,) = read_checked(known, SeenBuilds).seen
    assert (span.since, span.until) == ("3.1.2", "3.1.2")
    assert "debian-13" in span.works, "next to what the product knows of 3.1.2 already"


def test_a_wrong_question_is_answered_at_once(folder: Path) -> None:
    for wrong in (["build", "make"], ["build", "survey", "v1"], ["build", "survey"]):
        assert dsbisect(folder, *wrong).returncode == ExitCode.USAGE
    for wrong in (["--seed", "1"], ["--jobs", "0"], ["--every-toolchain", "--toolchain", "x"]):
        assert dsbisect(folder, *arguments(folder), *wrong).returncode == ExitCode.USAGE
    none = dsbisect(folder, *arguments(folder), "v*")
    assert none.returncode == ExitCode.SOURCE
    assert environment(folder)["DSBISECT_MATRIX"]
