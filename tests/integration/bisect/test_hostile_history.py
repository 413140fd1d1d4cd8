"""Commits that want to do harm go through the lab; nothing of theirs is seen outside."""

from __future__ import annotations

import json
import resource
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX
from hostile_history import Hostile, hostile_history
from lab import dsbisect, small_matrix

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commits_request import tree_of
from dsbuilds.history.repository import Repository
from dsharness.containers.engine import Engine
from dsharness.errors import BuildError
from dsharness.paths import config_home

pytestmark = pytest.mark.whole

UNBUILDABLE = {
    "a file that is not here": "lacks the file main.h",
    "escape codes \x1b]0;owned\x07\x1b[31m": "error: red",
}
MOST_KIB = 400 << 10  # of the largest process; 200 MB that are said fitted into no less than 600


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a cache and a home of its own, where a user has filters set up."""
    folder = tmp_path_factory.mktemp("hostile")
    small_matrix(folder, users=40)
    (folder / "target").mkdir()
    (folder / "target" / "sentinel").write_text("as it was\n")
    home, trap = folder / "home", folder / "trap"
    home.mkdir()
    trap.write_text(f"#!/bin/sh\ntouch {folder}/target/bitten\ncat\n")
    trap.chmod(0o755)
    (home / ".gitconfig").write_text(
        f'[filter "bad"]\n\tsmudge = {trap}\n\tclean = {trap}\n'
        f'[diff "bad"]\n\ttextconv = {trap}\n[merge "bad"]\n\tdriver = {trap}\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSBISECT_CONFIG", str(config_home()))
        patch.setenv("DSBISECT_CACHE", str(folder / "cache"))
        patch.setenv("HOME", str(home))
        yield folder


@pytest.fixture(scope="module")
def history(lab: Path) -> Hostile:
    return hostile_history(lab / "repo", lab / "target")


@pytest.fixture(scope="module")
def searched(lab: Path, history: Hostile) -> subprocess.CompletedProcess[str]:
    return dsbisect(
        lab, "bisect", "commits", "--repo", str(history.folder), "--good", history.commits["good"],
        "--bad", "main", "--workload", "bind-random", "--no-proof", "--json",
        "--output", str(lab / "report"), limit_s=1200,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_outside_changes(lab: Path, history: Hostile) -> Iterator[None]:
    before = state_of(lab)
    yield
    assert state_of(lab) == before
    assert (lab / "target" / "sentinel").read_text() == "as it was\n"


def state_of(lab: Path) -> dict[str, tuple[int, int, int]]:
    """All that is not the lab's own: path -> mode, size and time.

    podman asks rpm which packages its programs are of, and that keeps its locks at home.
    """
    found = (path for part in ("target", "repo", "home") for path in (lab / part).rglob("*"))
    facts = {str(path): path.lstat() for path in found if ".rpmdb" not in path.parts}
    return {path: (each.st_mode, each.st_size, each.st_mtime_ns) for path, each in facts.items()}


def test_the_culprit_is_found_among_them(
    searched: subprocess.CompletedProcess[str], history: Hostile, lab: Path
) -> None:
    assert searched.returncode == 0, searched.stderr
    (culprit,) = json.loads(searched.stdout)["culprits"]
    assert history.commits["slow"] in [each["hash"] for each in culprit["suspects"]]
    page = (lab / "report" / "report.html").read_text(encoding="utf-8")
    for text in (searched.stdout, searched.stderr, page):
        assert not {each for each in text if ord(each) in {0x1B, 0x07, 0x08, 0x9B}}
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < MOST_KIB


def test_every_one_of_them_is_built_and_none_steers_the_next(
    engine: Engine, lab: Path, history: Hostile
) -> None:
    """In the order of the history: each after what the one before it left."""
    repository = Repository.open(str(history.folder))
    supply = SourceSupply(
        engine=engine, matrix=MATRIX,
        toolchains=tuple(each for each in MATRIX.toolchains if each.id == "debian-13"),
    )  # fmt: skip
    for name, commit in history.commits.items():
        supply.add(name, tree_of(repository, commit))
        if name in UNBUILDABLE:
            with pytest.raises(BuildError, match=UNBUILDABLE[name]) as caught:
                supply.build(name, print)
            assert "\x1b" not in str(caught.value)
            continue
        build, _ = supply.build(name, print)
        modes = {path.lstat().st_mode for path in Path(build.folder).rglob("*")}
        assert not [mode for mode in modes if mode & (stat.S_ISUID | stat.S_ISGID)], name
        assert not [mode for mode in modes if stat.S_ISREG(mode) and mode & stat.S_IWOTH], name
    cache = lab / "cache"
    assert oct(stat.S_IMODE((cache / "builds").stat().st_mode)) == "0o700"
    logs = [path for path in (cache / "logs").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in logs) < 2 * 70 << 20
    assert not [path for path in logs if b"\x1b" in path.read_bytes()]


def test_a_hostile_commit_is_judged(
    searched: subprocess.CompletedProcess[str], history: Hostile, lab: Path
) -> None:
    del searched  # its samples are found again
    names = ("odd names", "escape codes \x1b]0;owned\x07\x1b[31m")
    for name, status in zip(names, (0, 125), strict=True):
        done = dsbisect(
            lab, "judge", history.commits[name], "--repo", str(history.folder),
            "--good", history.commits["good"], "--bad", "main", limit_s=600,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
