"""The lab's images through podman's socket: another tool, testcontainers, serves a directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.errors import InstanceError
from dsharness.matrix import load_matrix
from dsharness.measure.golden_state import golden_state
from dsharness.model import DirectoryContent, Settings
from dsharness.model.stored_password import stored_in
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems import Seed
from dsharness.systems.ldap.directory import connect
from dsharness.systems.ldap.directory_system import SOCKET_NAME
from dsharness.systems.readiness import shared_folder
from dsharness.systems.system import SHARED_FOLDER
from dsimages.image_set import build_image
from dsproducts.dirsrv.dirsrv import Dirsrv

MATRIX = load_matrix(Path(__file__).parents[3] / "matrix.yaml")


@pytest.fixture
def engine() -> Engine:
    return detect()


@pytest.fixture
def service(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Podman's own API on a socket of the test's, ended by its process id."""
    with shared_folder() as folder:
        socket = folder / "podman.sock"
        process = subprocess.Popen(
            ["podman", "system", "service", "--time=0", f"unix://{socket}"],
            env={**os.environ, **engine.environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_until(
                lambda: True if socket.exists() else None, Deadline.after(60), what="the socket"
            )
            monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
            monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
            yield str(socket)
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_testcontainers_serves_a_golden_state(engine: Engine, service: str) -> None:
    row = MATRIX.row("debian-12")
    image = build_image(engine, MATRIX, row, on_progress=print)
    seed = Seed(content=DirectoryContent(number=200), settings=Settings(id="test"))
    golden = golden_state(engine, image, row.system, seed, progress=print)
    driver = Dirsrv()
    with shared_folder() as shared:
        container = (
            DockerContainer(golden.reference)
            .with_command(list(driver.serve_command()))
            .with_volume_mapping(str(shared), SHARED_FOLDER, "rw")
            .with_kwargs(
                network_mode="none", user="dirsrv", cap_drop=["all"], init=True, shm_size="512m"
            )
        )
        with container:
            socket = shared / SOCKET_NAME

            def answers() -> str | None:
                try:
                    with connect(socket, driver.site) as directory:
                        return driver.version(directory)
                except InstanceError:
                    return None

            version = wait_until(answers, Deadline.after(60), what="a bind as the manager")
            assert "2.3.1" in version
            with connect(socket, driver.site) as directory:
                directory.check_user(199)
                assert directory.stored_password(0) == stored_in(golden.facts)
