"""The door to podman and buildah, with stand-ins that behave as they do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_disk import small_disk

from dsharness.containers.engine import Engine, last_line
from dsharness.errors import DiskFullError, EngineError
from dsharness.process.command import Completed
from dsharness.process.deadline import Deadline

PLAIN = Engine(
    podman_version="5.2.0",
    rootless=True,
    cgroups="v2",
    runtime="crun",
    pins_cpus=True,
    limits_memory=True,
)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    for name in ("podman", "buildah"):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize("program", ["podman", "buildah"])
def test_both_get_the_labs_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "$(basename "$0") $CONTAINERS_CONF $*"; cat')
    monkeypatch.setenv("CONTAINERS_CONF", "")
    engine = Engine(**{**PLAIN.__dict__, "configuration": Path("/lab/containers.conf")})
    done = getattr(engine, program)("ps", "-a", stdin="in\n")
    assert done.stdout == f"{program} /lab/containers.conf ps -a\nin\n"
    assert engine.environment == {"CONTAINERS_CONF": "/lab/containers.conf"}
    assert getattr(PLAIN, program)("ps").stdout == f"{program}  ps\n"


def test_must_gives_the_output_or_says_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(
        tmp_path, monkeypatch, '[ "$1" = info ] && echo " all " || { echo Error: x >&2; exit 1; }'
    )
    log = tmp_path / "logs" / "log"
    assert PLAIN.must("info") == "all"
    with pytest.raises(EngineError, match="podman ps failed: Error: x") as raised:
        PLAIN.must("ps", log=log)
    assert raised.value.log == log
    assert "doctor" in raised.value.hint
    assert "exit status 1" in log.read_text()


def test_a_killed_engine_is_held_against_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "kill -9 $$")
    with pytest.raises(EngineError, match="podman exec was killed by signal 9"):
        PLAIN.podman("exec", "box", "true")
    assert PLAIN.podman("rm", "box", cleanup=True).status == -9
    stand_in(tmp_path, monkeypatch, "exec sleep 60")
    assert PLAIN.podman("ps", deadline=Deadline.after(0.1)).timed_out


def test_a_listing_outlives_an_image_that_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = tmp_path / "count"
    gone = "Error: retrieving label for image: locating image with ID: image not known"
    fail = f'echo "{gone}" >&2; exit 125'
    stand_in(
        tmp_path, monkeypatch,
        f'echo x >>{count}; [ "$(wc -l <{count})" -gt 2 ] || {{ {fail}; }}; echo "$*"',
    )  # fmt: skip
    assert PLAIN.images("--all") == "images --all"
    assert count.read_text().count("x") == 3


def test_a_listing_that_fails_for_good_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "echo Error: database is locked >&2; exit 125")
    with pytest.raises(EngineError, match="podman images failed: Error: database is locked"):
        PLAIN.images()


@pytest.mark.parametrize("said", ["write x: no space left on device", "Disk quota exceeded"])
def test_a_full_disk_has_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    stand_in(tmp_path, monkeypatch, f'echo "Error: {said}" >&2; exit 125')
    with pytest.raises(DiskFullError, match="while podman ran commit"):
        PLAIN.podman("commit", "x")


@pytest.mark.parametrize("free", [0, 12, 64])
def test_what_runs_in_a_container_cannot_say_that_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    """It is measured: on a disk that is, the same words end the run."""
    stand_in(tmp_path, monkeypatch, 'echo "No space left on device" >&2; exit 1')
    assert not PLAIN.podman("exec", "box", "make").ok
    assert not PLAIN.buildah("build").ok
    with small_disk(f"size={free + 4}m") as disk:
        (disk / "ballast").write_bytes(bytes(4 << 20))
        monkeypatch.setenv("DSBISECT_CACHE", str(disk))
        for ask in (lambda: PLAIN.podman("exec", "box"), lambda: PLAIN.buildah("build")):
            if free < 64:
                with pytest.raises(DiskFullError, match="no space left while"):
                    ask()
            else:
                assert not ask().ok


def test_a_disk_that_was_full_for_a_moment_was_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What filled it is removed before buildah tells of it."""
    with small_disk("size=100m") as disk:
        ballast = disk / "ballast"
        fill = f"head -c 60m /dev/zero >{ballast}; sleep 1; rm {ballast}"
        stand_in(
            tmp_path, monkeypatch,
            f'[ "$1" != info ] || exit 1; {fill}; echo "no space left on device" >&2; exit 1',
        )  # fmt: skip
        monkeypatch.setenv("DSBISECT_CACHE", str(disk))
        with pytest.raises(DiskFullError, match="while buildah ran build"):
            PLAIN.buildah("build")


def test_the_same_words_from_a_command_that_went_well_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "echo 'no space left on device' >&2")
    assert PLAIN.podman("logs", "x").ok


@pytest.mark.parametrize(
    ("stderr", "stdout", "timed_out", "expected"),
    [
        ("warning: a\nError: b\nsee c\n", "", False, "Error: b"),
        ("one\ntwo\n\n", "out\n", False, "two"),
        ("", "only out\n", False, "only out"),
        ("", "", False, "exit status 125"),
        ("E: first\nE: second\n", "", False, "E: second"),
        ("Error: b\n", "", True, "it timed out"),
    ],
)
def test_the_line_that_says_why(stderr: str, stdout: str, timed_out: bool, expected: str) -> None:
    done = Completed(
        argv=("podman",), status=125, stdout=stdout, stderr=stderr, timed_out=timed_out
    )
    assert last_line(done) == expected
