"""A fault of machine or network ends a search at once and counts against no candidate."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
from pathlib import Path

import pytest
from histories import Past
from lab import argv, environment
from small_pasts import CRATES, LACKS, begin, matrix_with

from dsharness.errors import ExitCode

pytestmark = pytest.mark.whole

# As behind a firewall: nothing listens there.
UNREACHABLE = """
[net]
retry = 0
[source.crates-io]
replace-with = "nowhere"
[source.nowhere]
registry = "sparse+http://127.0.0.1:9/"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    matrix_with(tmp_path, "debian-13")
    (tmp_path / "cargo").mkdir()
    (tmp_path / "cargo" / "config.toml").write_text(UNREACHABLE)
    return tmp_path


def history(folder: Path, files: dict[str, str], commits: int) -> Past:
    past = begin(folder / "repo")
    past.commit("first", files)
    for number in range(commits):
        past.commit(f"c{number}", {"ldap/servers/slapd/x.c": f"int c{number};\n"})
    return past


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**environment(folder), "CARGO_HOME": str(folder / "cargo"), "LANG": "C.UTF-8"}
    return subprocess.run(
        argv(*args), cwd=folder, env={**os.environ, **env}, text=True, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=600,
    )  # fmt: skip


def search(folder: Path, past: Past) -> subprocess.CompletedProcess[str]:
    return run(
        folder,
        "bisect",
        "commits",
        "--repo",
        str(past.folder),
        "--good",
        past["first"],
        "--bad",
        "main",
    )


def built(told: str) -> set[str]:
    """The commits that were tried, each in as many toolchains as fit it."""
    return set(re.findall(r"(\w+): building", told))


def test_a_registry_that_cannot_be_reached(folder: Path) -> None:
    # Another lock than that of any run before, whose crates would be here.
    lock = f"# {secrets.token_hex(8)}\n{CRATES['src/Cargo.lock']}"
    past = history(folder, {**CRATES, "src/Cargo.lock": lock}, commits=20)
    done = search(folder, past)
    assert done.returncode == ExitCode.REGISTRY, done.stderr
    assert done.stderr.count("fetching the crates") <= 2, "both ends, at the same time"
    assert "the crates of" in done.stderr
    assert "check the network, proxy and mirrors" in done.stderr
    assert "ready (" not in done.stderr
    assert "cannot be measured" not in done.stderr

    past.tag("389-ds-base-3.9")
    done = run(folder, "build", "survey", "--repo", str(past.folder), "--json")
    assert done.returncode == ExitCode.REGISTRY, done.stderr
    assert json.loads(done.stdout)["results"] == []


def test_both_ends_that_fail_alike_end_the_search(folder: Path) -> None:
    """Each end is tried and nothing between; the reason, its log and what may help are told."""
    past = history(folder, {"configure.ac": LACKS}, commits=20)
    done = search(folder, past)
    assert done.returncode == ExitCode.SURROUNDINGS, done.stderr
    assert done.stderr.count(": failed (") == 4, "both ends, compared and searched; not: ready"
    assert "ready (" not in done.stderr
    assert "cannot be measured" not in done.stderr, "nothing further in"
    assert len(built(done.stderr)) <= 2, "none, where the failures are known"
    told = done.stderr[done.stderr.index("error: both ends, ") :].splitlines()
    assert "configure: error: no such feature" in told[0]
    assert "no such feature" in Path(told[1].removeprefix("  log: ")).read_text()
    assert [line.strip()[:2] for line in told[3:6]] == ["1.", "2.", "3."]
    assert "build survey" in told[5]
    assert done.stderr.count("bold") == 0


def test_both_servers_that_die_alike_end_it_too(folder: Path) -> None:
    done = search(folder, history(folder, {}, commits=3))
    assert done.returncode == ExitCode.SURROUNDINGS, done.stderr
    assert "its last output: EMERG - main - no such backend" in done.stderr
    assert "1. other settings for the server" in done.stderr
    assert "cannot be measured" not in done.stderr


def test_what_fails_as_the_end_did_in_its_place_ends_it(folder: Path) -> None:
    """The ends fail each for a reason of its own, and one of these again and again."""
    past = history(folder, {"configure.ac": LACKS}, commits=20)
    past.commit("other", {"configure.ac": LACKS.replace("such feature", "other thing")})
    done = search(folder, past)
    assert done.returncode == ExitCode.SURROUNDINGS, done.stderr
    assert "the end " in done.stderr
    assert "cannot be measured for the same reason, one after the other" in done.stderr
    assert len(built(done.stderr)) <= 4, "both ends, and two in the place of one"
