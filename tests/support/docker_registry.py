"""Debian's `docker-registry` for one test, on loopback; it can be ended, and its files harmed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from free_port import free_port
from own_authority import AUTHORITY, CERTIFICATE, KEY, sign

from dsharness.process.deadline import Deadline

SETTINGS = """version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}}}
http: {{addr: "127.0.0.1:{port}", secret: of-a-test{tls}}}
"""
TLS = f", tls: {{{{certificate: {{folder}}/{CERTIFICATE}, key: {{folder}}/{KEY}}}}}"
# Whom it lets in, if anybody has to say who he is: bcrypt, as `htpasswd -B` writes it.
GUARDED = "auth: {{htpasswd: {{realm: test, path: {folder}/users}}}}\n"


@dataclass(kw_only=True)
class DockerRegistry:
    """A registry that runs, or ran and can run again."""

    folder: Path
    port: int
    users: str = ""
    tls: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        settings = self.folder / "settings.yml"
        text = SETTINGS + (GUARDED if self.users else "")
        tls = TLS.format(folder=self.folder) if self.tls else ""
        settings.write_text(text.format(folder=self.folder, port=self.port, tls=tls))
        (self.folder / "users").write_text(self.users)
        # It takes its settings from the environment, too, and podman's REGISTRY_AUTH_FILE for one.
        seen = {name: value for name, value in os.environ.items() if "REGISTRY" not in name}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["docker-registry", "serve", str(settings)], env=seen, stdout=log, stderr=log
            )
        deadline = Deadline.after(20)
        while not self._answers():
            assert not deadline.passed, (self.folder / "log").read_text()
            time.sleep(0.05)

    def end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
            return True
        return False

    @property
    def certificate(self) -> Path:
        """Of who signed its own: who knows it knows the registry."""
        return self.folder / AUTHORITY

    def blob(self, digest: str) -> Path:
        """The file with that digest: a manifest, a configuration or a layer."""
        name = digest.removeprefix("sha256:")
        return self.folder / f"data/docker/registry/v2/blobs/sha256/{name[:2]}/{name}/data"


@contextmanager
def docker_registry(
    folder: Path, users: str = "", *, tls: bool = False
) -> Iterator[DockerRegistry]:
    """The test is skipped where none is installed."""
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed: apt-get install docker-registry")
    folder.mkdir()
    made = DockerRegistry(folder=folder, port=free_port(), users=users, tls=tls)
    if tls:
        sign(folder, "127.0.0.1")
    try:
        made.start()
        yield made
    finally:
        made.end()
