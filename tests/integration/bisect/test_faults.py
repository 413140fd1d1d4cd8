"""Faults of the kernel's surroundings: a server killed, a disk that fills, an unknown scheme.

What only the load sees (a server that hangs, users who cannot bind, a taken port) is in
test_kernel; sources that cannot be reached are in test_images and test_bootstrap_dnf.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from benches import (
    DEFAULT,
    MATRIX,
    USERS,
    cpus_of,
    golden_of,
    image_of,
    slapd_pid,
    when_loaded,
)
from small_disk import small_disk
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.containers.ownership import found, remove
from dsharness.errors import DiskFullError, ExitCode, InstanceError
from dsharness.measure.golden_state import Golden, golden_key, golden_state
from dsharness.measure.ways import InTurn
from dsharness.model import DirectoryContent, Image, LdcltWorkload, Settings, UserOrder
from dsharness.systems import Seed
from dslab.candidates import RowSupply
from dslab.lab_conditions import LabConditions
from dslab.laboratory import Laboratory

pytestmark = pytest.mark.whole

ROW = "debian-12"
LOAD = LdcltWorkload(id="load", title="at random", users=USERS, distinct_users=USERS, duration_s=2)
REPEAT = LOAD.model_copy(update={"id": "one", "distinct_users": 1, "order": UserOrder.REPEAT})
SMALL_STORAGE = """
[storage]
driver = "overlay"
graphroot = "{disk}/graph"
runroot = "{disk}/run"
[storage.options]
additionalimagestores = ["{images}"]
"""


class GoodPreparation:
    """Preparations that must go well."""

    def prepared(self, row: str) -> None:
        del row

    def failed(self, row: str, why: str) -> None:
        raise AssertionError(f"{row}: {why}")


def test_a_laboratory_goes_on_with_a_new_server_where_one_was_killed(engine: Engine) -> None:
    conditions = LabConditions(
        matrix=MATRIX, settings=DEFAULT, workloads=(LOAD,), way=InTurn(cpus=cpus_of(engine))
    )
    with Laboratory(
        engine, conditions, RowSupply(engine=engine, matrix=MATRIX), print
    ) as laboratory:
        laboratory.prepare([ROW], GoodPreparation())
        assert laboratory.failures == {}
        (first,) = laboratory.take(turn_of(REPEAT, 0, ROW))
        assert first.valid, first.invalid
        at, _ = laboratory._benches[ROW]
        victim, pid = at.instance.container, slapd_pid(at)
        with when_loaded(at, lambda: os.kill(pid, signal.SIGKILL)):
            (dead,) = laboratory.take(turn_of(LOAD, 1, ROW))
        assert "the server died during the load" in dead.invalid
        assert dead.disturbed == ("the server was ended from outside",), "it did not crash"
        assert dead.value("cpu") is None  # nothing that could be taken for a figure
        log = Path(dead.log)
        assert log == victim.log
        assert "slapd started" in log.read_text(encoding="utf-8")
        assert victim.state().id == ""

        (after,) = laboratory.take(turn_of(REPEAT, 2, ROW))
        assert after.valid, after.invalid
        assert after.operations > 0
        again, _ = laboratory._benches[ROW]
        assert again.instance.container.name != victim.name
        names = (again.instance.container, again.load)
    assert [box.state().id for box in names] == ["", ""]


@pytest.mark.parametrize(
    ("row", "scheme"),
    [("debian-11", "PBKDF2-SHA512"), ("debian-13", "NO_SUCH_SCHEME")],
    ids=["of a later version", "of no version"],
)
def test_a_scheme_that_this_version_lacks_is_told_in_the_servers_words(
    engine: Engine, row: str, scheme: str
) -> None:
    with pytest.raises(InstanceError) as caught:
        golden_of(engine, row, Settings(id="wrong", options={"password-scheme": scheme}), users=20)
    assert caught.value.exit_code == ExitCode.INSTANCE
    assert f"passwordStorageScheme: {scheme}" in caught.value.message
    assert "invalid scheme" in caught.value.message
    assert "other settings" in caught.value.hint


@pytest.fixture
def image(engine: Engine) -> Image:
    return image_of(engine, ROW)


def make(engine: Engine, image: Image, progress: Callable[[str], None] = print) -> Golden:
    """A golden state that is made again: no other test has this number of users."""
    seed = Seed(
        content=DirectoryContent(number=23),
        settings=Settings(id="full", options={"password-scheme": "SSHA512"}),
    )
    server = MATRIX.row(ROW).system
    engine.podman("image", "rm", f"localhost/dsbisect/golden:{golden_key(image, server, seed)}")
    return golden_state(engine, image, server, seed, progress=progress)


# What a tmpfs can run out of: room for data (the folder that is shared with a server holds none),
# and room for one file or folder more.
@pytest.mark.parametrize(
    ("variable", "options"),
    [
        pytest.param("DSBISECT_CACHE", "size=4k", id="logs, data"),
        pytest.param("DSBISECT_CACHE", "nr_inodes=2", id="logs, a file"),
        pytest.param("DSBISECT_CACHE", "nr_inodes=1", id="logs, a folder"),
        pytest.param("XDG_RUNTIME_DIR", "nr_inodes=2", id="shared folder, the inner one"),
        pytest.param("XDG_RUNTIME_DIR", "nr_inodes=1", id="shared folder, the outer one"),
    ],
)
def test_a_full_disk_under_the_labs_own_files(
    engine: Engine, image: Image, monkeypatch: pytest.MonkeyPatch, variable: str, options: str
) -> None:
    with small_disk(options) as disk:
        monkeypatch.setenv(variable, str(disk))
        with pytest.raises(DiskFullError, match=f"no space left while writing {disk}") as caught:
            make(engine, image)
        assert caught.value.exit_code == ExitCode.DISK
        assert "dsbisect clean" in caught.value.hint


def fill(disk: Path) -> None:
    """Leave no room at all."""
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        while shutil.disk_usage(disk).free:
            ballast.write(bytes(min(1024 * 1024, shutil.disk_usage(disk).free)))


def test_a_disk_that_fills_while_a_golden_state_is_kept(
    engine: Engine, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = engine.must("info", "--format", "{{.Store.GraphRoot}}")
    with small_disk("size=2g") as disk:
        settings = tmp_path / "storage.conf"
        settings.write_text(SMALL_STORAGE.format(disk=disk, images=images), encoding="utf-8")
        monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(settings))

        def progress(what: str) -> None:
            if what == "keeping the golden state":
                fill(disk)

        with pytest.raises(DiskFullError, match="podman ran commit") as caught:
            make(engine, image, progress)
        assert caught.value.exit_code == ExitCode.DISK
        assert caught.value.log is not None
        assert caught.value.log.is_file()
        (disk / "ballast").unlink()
        for box in found(engine):  # podman could not even note that it had removed it
            remove(engine, box.name)
        made: list[str] = []
        make(engine, image, made.append)  # nothing half-kept is taken for the whole
        assert made[-1] == "keeping the golden state"
