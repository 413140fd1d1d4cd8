"""A podman that keeps everything in the test's own folder: others' containers are not in sight."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect, root_folder
from dsharness.errors import ToolMissingError
from dsharness.process.command import run

STORAGE = '[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'


@dataclass(frozen=True, kw_only=True)
class Storage:
    """A folder with containers and images of its own."""

    engine: Engine
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def configuration(self) -> Path:
        return self.folder / "storage.conf"

    def use(self) -> Engine:
        """From now on podman works there, until another one is used."""
        self.monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(self.configuration))
        return self.engine


@contextmanager
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """Storage that is used now; several can be there. What is left in it is removed."""
    try:
        engine = detect()
    except ToolMissingError as error:
        pytest.skip(str(error))
    # Not pytest's own folder: with a long runroot podman 4 waits 20 s for each container's end.
    folder = Path(tempfile.mkdtemp(prefix="dsb-s-", dir="/tmp"))
    driver = "overlay" if os.getuid() == 0 else "vfs"
    made = Storage(engine=engine, folder=folder, monkeypatch=monkeypatch)
    made.configuration.write_text(STORAGE.format(driver=driver, folder=folder))
    made.use()
    try:
        yield made
    finally:
        made.use()
        engine.podman("rm", "--all", "--force", "--time", "0", cleanup=True)
        engine.podman("rmi", "--all", "--force", cleanup=True)
        run(["umount", str(folder / "graph" / "overlay")], cleanup=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine that works here, on storage of its own; removes what is left in it."""
    with storage(monkeypatch) as made:
        yield made.engine


@contextmanager
def host_root() -> Iterator[tuple[str, tuple[str, ...]]]:
    """What stands for an image: the host's programs, and the flags that show them."""
    with root_folder() as (root, volumes):
        yield str(root), (*volumes, "--rootfs")
