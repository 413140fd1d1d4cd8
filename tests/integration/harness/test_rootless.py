"""The command in an ordinary user's hands: doctor, then a real sample of a row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import ROOT, small_matrix
from matrices import edited
from unprivileged import User, unprivileged_user

from dsharness.containers.engine_probe import detect
from dsharness.matrix import load_matrix
from dsharness.model import Sample
from dsimages.image_set import build_image

pytestmark = pytest.mark.rootless

MAIN = ("-c", "from dsbisect.program import main; main()")
PODMAN = ("-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)")
ROW = "debian-12"
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'


class Owner:
    """A user with an own small matrix, whose podman has the row's image."""

    def __init__(self, user: User, matrix: Path) -> None:
        self._user = user
        self._environment = {
            "CONTAINERS_STORAGE_CONF": str(user.folder / "storage.conf"),
            "DSBISECT_MATRIX": str(matrix),
            "DSBISECT_STORE": str(user.home / "results.db"),
        }

    def json(self, *args: str) -> Any:
        done = self._user.python(*MAIN, *args, "--json", **self._environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout)

    def podman(self, *args: str) -> str:
        done = self._user.python(*PODMAN, "podman", *args, **self._environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def owner() -> Iterator[Owner]:
    if Path("/dev/null").stat().st_mode & 0o006 != 0o006:
        pytest.skip("/dev/null is not writable for users here")
    with unprivileged_user() as user:
        archive = hand_over(user)
        (user.folder / "storage.conf").write_text(STORAGE.format(user.home), encoding="utf-8")
        found = Owner(user, user.home / "matrix.yaml")
        found.json("doctor")  # finds out how this user's podman starts containers
        found.podman("load", "--quiet", "--input", str(archive))
        yield found


def hand_over(user: User) -> Path:
    """The row's image as a file, the matrix and the lock that name it."""
    small_matrix(user.home)
    path = user.home / "matrix.yaml"
    with edited(path) as document:
        document["tools"]["loads"]["ldclt"] = ROW  # one image is enough to hand over
    engine, matrix = detect(), load_matrix(path)
    image = build_image(engine, matrix, matrix.row(ROW), on_progress=print)
    shutil.copy(ROOT / "Containerfile.base", user.folder / "seen")  # a part of the image's name
    archive = user.folder / "image.tar"
    engine.must("save", "--quiet", "--output", str(archive), image.reference)
    for file in (archive, path, path.with_suffix(".lock")):
        file.chmod(0o644)
        shutil.chown(file, user.uid, user.uid)
    return archive


def test_doctor_says_what_this_user_can_and_cannot_do(owner: Owner) -> None:
    told = owner.json("doctor")
    assert told["ok"] is True
    assert told["engine"]["rootless"] is True


def test_a_row_is_measured_without_any_privilege(owner: Owner) -> None:
    engine = owner.json("doctor")["engine"]
    taken = owner.json("measure", ROW, "--workload", "bind-one", "--runs", "2")
    for sample in map(Sample.model_validate, taken):
        assert sample.operations > 0
        assert sample.value("cpu")
        assert sample.facts["password-scheme"] == "PBKDF2-SHA512"
        assert sample.machine.facts["rootless"] is True
        assert sample.machine.facts["pinned"] is engine["pins_cpus"]
        assert sample.bench.cpu_meter in {"proc", "cgroup-v1", "cgroup-v2"}
        assert sample.valid, sample.invalid


def test_nothing_of_it_is_left_and_another_look_starts_from_the_golden_state(owner: Owner) -> None:
    assert owner.podman("ps", "--all", "--quiet") == ""
    listed = owner.podman("images", "--format", "{{.Repository}}", "localhost/dsbisect/golden")
    assert listed.split() == ["localhost/dsbisect/golden"]
    (sample,) = owner.json("measure", ROW, "--workload", "bind-one", "--runs", "1")
    assert sample["operations"] > 0
    campaigns = owner.json("list", "answers")
    assert [campaign["samples"] for campaign in campaigns] == [2, 1]
