"""A disk that is really small, where root may mount one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dsharness.process.command import run


@contextmanager
def small_disk(options: str) -> Iterator[Path]:
    """A tmpfs with these mount options, such as ``size=24m``; gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = Path(tempfile.mkdtemp(prefix="dsb-d-", dir="/tmp"))  # short: sockets live below
    if not run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]).ok:
        disk.rmdir()
        pytest.skip("mounting a small disk needs CAP_SYS_ADMIN")
    try:
        yield disk
    finally:
        run(["umount", "--recursive", "--lazy", str(disk)], cleanup=True)
        shutil.rmtree(disk, ignore_errors=True)  # podman may write there after that
