"""Debian rows for real: bootstrapped, installed, locked, found again, refused, interrupted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.errors import PackageError, UnreachableError
from dsharness.matrix import load_matrix
from dsharness.model import Bootstrap, Image, Matrix, PreinstalledPackages
from dsharness.process.deadline import Deadline
from dsharness.products import notable_versions
from dsimages.archive import offers_nothing_newer
from dsimages.buildah import REPOSITORY, WORK, Recipe, Workshop, build, remove_leftovers
from dsimages.image_set import build_image, build_images, image_of, list_images, lock_of
from dsimages.manifest import recall
from dsimages.matrix_lock import Locked, definition_key

MATRIX = Path(__file__).parents[3] / "matrix.yaml"
NEEDED = ("ldclt", "dscreate", "dsctl", "ns-slapd", "ldapsearch", "pwdhash")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return detect()


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load_matrix(MATRIX)


@pytest.fixture
def unlocked(tmp_path) -> Matrix:
    """The same matrix with a lock of its own, which is empty."""
    shutil.copy(MATRIX, tmp_path)
    return load_matrix(tmp_path / "matrix.yaml")


@pytest.fixture(scope="module")
def image(engine, matrix) -> Image:
    row = matrix.row(matrix.tools.loads["ldclt"])
    return build_image(engine, matrix, row, on_progress=lambda _: None)


def silent(*_: str) -> None: ...


def test_image_has_what_the_lab_runs(engine, image):
    engine.must(
        "run", "--rm", "--network", "none", image.reference,
        "sh", "-ec", 'for tool; do command -v "$tool"; done', "sh", *NEEDED,
    )  # fmt: skip


def test_image_says_what_it_is(engine, matrix, image):
    row = matrix.row(image.candidate_id)
    labels = json.loads(
        engine.must("image", "inspect", "--format", "{{json .Labels}}", image.reference)
    )
    assert labels["dsbisect"] == "1"
    assert labels["dsbisect.kind"] == "image"
    assert labels["dsbisect.row"] == row.id
    assert labels["dsbisect.key"] == image.key
    assert labels["org.opencontainers.image.version"] == image.packages["389-ds-base"]
    assert image.reference == f"{REPOSITORY}/{row.id}:{image.key}"


def test_manifest_lies_beside_the_image(engine, matrix, image):
    assert set(notable_versions(image)) == {"389-ds", "nss", "openssl", "libldap", "glibc"}
    assert len(image.packages) > 100
    assert recall(image.key) == image
    assert image in list_images(engine)
    assert image_of(engine, matrix, matrix.row(image.candidate_id)) == image


def test_second_build_builds_nothing(engine, matrix, image):
    said: list[str] = []
    before = time.monotonic()
    again = build_image(engine, matrix, matrix.row(image.candidate_id), on_progress=said.append)
    assert again == image
    assert said == []
    assert time.monotonic() - before < 20


def test_lock_holds_the_release_suffix(matrix, image):
    locked = lock_of(matrix).read(matrix.row(image.candidate_id))
    assert locked.packages["389-ds-base"] == image.packages["389-ds-base"]
    assert locked.packages["python3-lib389"] == image.packages["python3-lib389"]


def test_drift_is_refused(engine, unlocked, image):
    row = unlocked.row(image.candidate_id)
    gone = Locked(
        row=definition_key(row), packages={"389-ds-base": "3.1.2-0lost1"}, manifest="other"
    )
    lock_of(unlocked).write(row, gone)
    with pytest.raises(PackageError) as caught:
        build_image(engine, unlocked, row, on_progress=silent)
    said = caught.value.message
    assert "389-ds-base: wanted 3.1.2-0lost1; available: " in said
    assert image.packages["389-ds-base"] in said
    assert "--relock" in caught.value.hint
    assert lock_of(unlocked).read(row) == gone


def test_one_impossible_row_stops_no_other(engine, matrix, image):
    row = matrix.row(image.candidate_id)
    impossible = row.model_copy(update={"id": "toy-9", "versions": {"389-ds": "9.9.9"}})
    made = build_images(engine, matrix, [impossible, row], on_progress=silent)
    assert made[row.id] == image
    error = made["toy-9"]
    assert isinstance(error, PackageError)
    assert "389-ds-base: wanted 9.9.9; available: " in error.message
    assert error.log.read_text()


NEWEST = "apt-get update && apt-get -y -o Dpkg::Options::=--force-confold dist-upgrade"
OLDER = "sed -i '/^Package: bash$/,/^$/s/^Version: .*/Version: 0/' /var/lib/dpkg/status"


@pytest.mark.whole
@pytest.mark.parametrize(("change", "newest"), [(NEWEST, True), (OLDER, False)])
def test_an_archive_tells_whether_it_has_anything_newer(
    engine, matrix, image, tmp_path, change, newest
):
    row = matrix.row(image.candidate_id)
    at = Workshop(engine=engine, deadline=Deadline.after(300), log=tmp_path / "log")
    name = f"{REPOSITORY}/test-archive:{'newest' if newest else 'older'}"
    text = f"ARG BASE\nFROM ${{BASE}}\nRUN {change}\n"
    build(at, Recipe(text=text, base=image.reference, reference=name, labels={}, what="a test"))
    try:
        changed = image.model_copy(update={"reference": name})
        assert offers_nothing_newer(engine, row, changed) is newest
        held = row.model_copy(update={"packages": PreinstalledPackages()})
        assert not offers_nothing_newer(engine, held, changed), "only an installation can tell"
    finally:
        engine.podman("rmi", name)


def test_mirror_that_cannot_be_reached(engine, unlocked, monkeypatch):
    monkeypatch.setenv("DSBISECT_MIRROR_BOOKWORM", "http://127.0.0.1:9/debian")
    row = unlocked.row("debian-12")
    assert isinstance(row.base, Bootstrap)
    with pytest.raises(UnreachableError, match="bootstrap bookworm") as caught:
        build_image(engine, unlocked, row, on_progress=silent)
    assert caught.value.log.exists()


def command(unlocked: Matrix, candidate_id: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable, "-c", "from dsbisect.program import main; main()",
            "image", "build", candidate_id, "--json", "--matrix", str(unlocked.file),
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.whole
def test_two_processes_share_one_build(engine, unlocked, image):
    both = [command(unlocked, image.candidate_id) for _ in range(2)]
    ends = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    first, second = (json.loads(stdout)[0]["reference"] for stdout, _ in ends)
    assert first == second
    assert sum("image exists already" in stderr for _, stderr in ends) == 1
    assert engine.podman("image", "exists", first).ok


def own_leftovers(engine: Engine, pid: int) -> list[str]:
    containers = engine.buildah("containers", "--all", "--format", "{{.ContainerName}}").stdout
    images = engine.images("--all", "--format", "{{.Repository}}:{{.Tag}}")
    mine = (f"{WORK}{pid}-", f"/draft:{pid}-")
    return [name for name in f"{containers}\n{images}".splitlines() if any(m in name for m in mine)]


@pytest.mark.parametrize(
    "sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.whole)]
)
def test_interrupted_build_leaves_nothing_half_made(engine, unlocked, image, sign):
    process = command(unlocked, image.candidate_id)
    for line in process.stderr:
        if "installing" in line:
            break
    deadline = time.monotonic() + 30
    while not own_leftovers(engine, process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(sign)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stdout + stderr
    assert own_leftovers(engine, process.pid) == []
    assert engine.podman("image", "exists", image.reference).ok


@pytest.mark.whole
def test_what_a_killed_build_left_is_removed_but_nothing_of_the_living(engine, image):
    dead, alive = f"{WORK}1-1-abcd", f"{WORK}{os.getpid()}-{start_time()}-abcd"
    for name in (dead, alive):
        alias = f"{REPOSITORY}/{name}"
        assert engine.buildah("tag", image.reference, alias).ok
        assert engine.buildah("from", "--pull=never", alias).ok
    removed = remove_leftovers(engine)
    try:
        assert {name for name in removed if "-1-1-" in name} == {
            f"{dead}-working-container", f"{REPOSITORY}/{dead}:latest",
        }  # fmt: skip
        assert len(own_leftovers(engine, os.getpid())) == 2
    finally:
        engine.buildah("rm", f"{alive}-working-container")
        engine.podman("rmi", f"{REPOSITORY}/{alive}")


def start_time() -> str:
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
