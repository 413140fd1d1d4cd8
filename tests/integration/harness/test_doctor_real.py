"""`dsbisect doctor` on this machine: as it is, without podman, with a broken one, and rootless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from own_storage import own_storage
from unprivileged import unprivileged_user

from dsharness.errors import ExitCode

VERSION = '[ "$1" = --version ] && echo podman version 5.0.0 && exit'
MAIN = ("-c", "from dsbisect.program import main; main()")


def dsbisect(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *MAIN, *args],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def levels(document: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["level"] for check in document["checks"]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSBISECT_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "users"))
    (tmp_path / "users" / "containers").mkdir(parents=True)
    return tmp_path


def test_this_machine_can_run_the_lab_and_the_users_files_stay_as_they_are(home: Path) -> None:
    theirs = home / "users" / "containers" / "containers.conf"
    theirs.write_text('[containers]\ntz = "UTC"\n')
    before = theirs.stat().st_mtime_ns
    done = dsbisect("doctor", "--fresh", "--json")
    document = json.loads(done.stdout)
    failed = [check for check in document["checks"] if check["level"] == "fail"]
    assert (done.returncode, failed) == (0, [])
    assert document["ok"] is True
    known = levels(document)
    assert {"podman", "buildah", "containers", "builds", "CPU time", "ports", "CPUs"} <= set(known)
    assert all(check["fix"] for check in document["checks"] if check["level"] != "ok")
    assert theirs.stat().st_mtime_ns == before
    assert [path.name for path in theirs.parent.iterdir()] == ["containers.conf"]
    assert "dsbisect" not in [path.name for path in (home / "users").iterdir()]


@pytest.mark.whole
def test_the_table_shows_every_check_and_a_last_line(home: Path) -> None:
    done = dsbisect("doctor")
    assert done.returncode == 0
    assert "CPU pinning" in done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert last == "everything is fine" or last.endswith("the lab works")


@pytest.mark.whole
def test_it_leaves_no_container_and_no_image(home: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, own_storage(patch) as engine:
        assert dsbisect("doctor", "--fresh").returncode == 0
        assert engine.must("ps", "--all", "--quiet", "--external") == ""
        assert engine.images("--all", "--quiet") == ""


def test_without_podman(home: Path) -> None:
    (home / "bin").mkdir()
    done = dsbisect("doctor", "--json", PATH=str(home / "bin"))
    document = json.loads(done.stdout)
    assert done.returncode == ExitCode.TOOL_MISSING == document["exit_code"]
    assert levels(document)["podman"] == "fail"
    assert "make setup" in next(c["fix"] for c in document["checks"] if c["name"] == "podman")
    assert done.stderr.count("Traceback") == 0


@pytest.mark.parametrize(
    ("script", "fix"),
    [
        (f"{VERSION}; exit 125", "podman info"),
        (f"{VERSION}; echo 'Error: open /dev/null: permission denied' >&2; exit 126", "chmod 0666"),
        ("exit 1", "podman"),
    ],
)
def test_with_a_podman_that_does_not_work(home: Path, script: str, fix: str) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "podman").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin" / "podman").chmod(0o755)
    done = dsbisect("doctor", "--json", PATH=f"{home / 'bin'}:{os.environ['PATH']}")
    document = json.loads(done.stdout)
    assert done.returncode == ExitCode.ENGINE
    assert levels(document)["containers"] == "fail"
    assert fix in next(c["fix"] for c in document["checks"] if c["name"] == "containers")
    assert "Traceback" not in done.stderr


@pytest.mark.whole
def test_a_remembered_engine_that_stopped_working_is_found_anew(home: Path) -> None:
    first = json.loads(dsbisect("doctor", "--json").stdout)["engine"]
    memory = home / "config" / "engine.json"
    stored = json.loads(memory.read_text())
    (home / "config" / "bad.conf").write_text('[engine]\nruntime = "none"\n')
    stored["engine"]["configuration"] = str(home / "config" / "bad.conf")
    memory.write_text(json.dumps(stored))
    assert json.loads(dsbisect("doctor", "--json").stdout)["engine"] == first


@pytest.mark.rootless
def test_an_ordinary_user_gets_a_plan_that_works() -> None:
    """Detected by starting, building and metering as a user made for this test."""
    if Path("/dev/null").stat().st_mode & 0o006 != 0o006:
        pytest.skip("/dev/null is not writable for users here")
    with unprivileged_user() as user:
        done = user.python(*MAIN, "doctor", "--fresh", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        document = json.loads(done.stdout)
        assert document["engine"]["rootless"] is True
        known = levels(document)
        assert known["builds"] == "ok"
        assert known["subordinate ids"] == "ok"
        assert known["CPU time"] in {"ok", "warn"}
        if document["engine"]["cgroups"] == "v1":  # podman takes limits there and ignores them
            assert (known["CPU pinning"], known["memory limits"]) == ("warn", "warn")
        configuration = document["engine"]["configuration"]
        assert not configuration or configuration.startswith(str(user.home))
        assert not (user.home / ".config" / "containers").exists()
