"""A podman that keeps everything in the test's own folder: others' containers are not in sight."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect, root_folder
from dsharness.errors import ToolMissingError
from dsharness.process.command import run

STORAGE = '[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'


@contextmanager
def own_storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine that works here, on storage of its own; removes what is left in it."""
    try:
        engine = detect()
    except ToolMissingError as error:
        pytest.skip(str(error))
    # Not pytest's own folder: with a long runroot podman 4 waits 20 s for each container's end.
    folder = Path(tempfile.mkdtemp(prefix="dsb-s-", dir="/tmp"))
    configuration = folder / "storage.conf"
    driver = "overlay" if os.getuid() == 0 else "vfs"
    configuration.write_text(STORAGE.format(driver=driver, folder=folder))
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(configuration))
    try:
        yield engine
    finally:
        engine.podman("rm", "--all", "--force", "--time", "0", cleanup=True)
        engine.podman("rmi", "--all", "--force", cleanup=True)
        run(["umount", str(folder / "graph" / "overlay")], cleanup=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def host_root() -> Iterator[tuple[str, tuple[str, ...]]]:
    """What stands for an image: the host's programs, and the flags that show them."""
    with root_folder() as (root, volumes):
        yield str(root), (*volumes, "--rootfs")
