"""Crates come from the registries that the matrix names and from nowhere else, tried for real."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import socket
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benches import MATRIX

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.crate_lock import CRATES_IO, SOURCES
from dsbuilds.toolchains.crates import crates_for
from dsbuilds.toolchains.toolchain_choice import named
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.engine import Engine
from dsharness.errors import UnreachableError


def _packed() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, text in {
            "Cargo.toml": '[package]\nname = "tiny-thing"\nversion = "1.2.3"\n',
            "src/lib.rs": "",
        }.items():
            member = tarfile.TarInfo(f"tiny-thing-1.2.3/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return held.getvalue()


CRATE = _packed()
SUM = hashlib.sha256(CRATE).hexdigest()


@dataclass
class Registry:
    """A registry with one crate, on this machine's loopback; notes what it was asked for."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    elsewhere: str = ""  # where its index says that the crate is
    moved: str = ""  # where it sends who asks for the crate

    @property
    def source(self) -> str:
        return f"sparse+http://127.0.0.1:{self.port}/"


@pytest.fixture
def registry() -> Iterator[Registry]:
    known = Registry()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.asked.append(self.path)
            line = {"name": "tiny-thing", "vers": "1.2.3", "deps": [], "cksum": SUM,
                    "features": {}, "yanked": False}  # fmt: skip
            here = known.elsewhere or f"http://127.0.0.1:{known.port}"
            download = f"{here}/dl/{{crate}}/{{version}}"
            body = {
                "/config.json": json.dumps({"dl": download}).encode(),
                "/ti/ny/tiny-thing": json.dumps(line).encode(),
                "/dl/tiny-thing/1.2.3": CRATE,
            }.get(self.path)
            moved = known.moved if self.path.startswith("/dl/") else ""
            self.send_response(302 if moved else 404 if body is None else 200)
            if moved:
                self.send_header("Location", moved)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield known
        server.shutdown()


@pytest.fixture
def toolset(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolchainImage:
    """The cargo of the matrix, with a cache of this test's own."""
    made = toolset_of(engine, MATRIX, named(MATRIX.tools.cargo or "", MATRIX.toolchains),
                      progress=print)  # fmt: skip
    monkeypatch.setattr("dsbuilds.build_cache.cache_home", lambda: tmp_path / "cache")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    return made


def fetched(engine: Engine, toolset: ToolchainImage, source: str, log: Path) -> Path:
    lock = (
        f'version = 3\n[[package]]\nname = "tiny-thing"\nversion = "1.2.3"\nsource = "{source}"\n'
        f'checksum = "{SUM}"\n'
    )
    tree: Any = SimpleNamespace(read=lambda _: lock, origin="a small tree")
    return crates_for(engine, tree, toolset, log, print)


def test_a_lock_cannot_choose_whom_this_machine_asks(
    engine: Engine, toolset: ToolchainImage, registry: Registry, tmp_path: Path
) -> None:
    for source in (registry.source, "git+file:///etc#0", f"git+http://127.0.0.1:{registry.port}/x#0",
                   f"registry+http://127.0.0.1:{registry.port}/secret"):  # fmt: skip
        with pytest.raises(UnbuildableError, match="which is not a registry of the matrix"):
            fetched(engine, toolset, source, tmp_path / "log")
    assert registry.asked == []


@pytest.mark.parametrize("way", ["elsewhere", "moved"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_registry_of_the_matrix_cannot_send_cargo_to_this_machine(
    engine: Engine, toolset: ToolchainImage, registry: Registry, tmp_path: Path, way: str, host: str
) -> None:
    """What listens on its loopback sees no connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        setattr(registry, way, f"http://{host}:{port}")
        trusting = replace(toolset, registries=frozenset({registry.source}))
        with pytest.raises(UnbuildableError, match=f"lead to {host}:{port}, which is no registry"):
            fetched(engine, trusting, registry.source, tmp_path / "log")
        assert "/ti/ny/tiny-thing" in registry.asked
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_registry_of_the_matrix_is_asked_and_builds_find_its_crates(
    engine: Engine, toolset: ToolchainImage, registry: Registry, tmp_path: Path
) -> None:
    trusting = replace(toolset, registries=frozenset({CRATES_IO, registry.source}))
    folder = fetched(engine, trusting, registry.source, tmp_path / "log")
    assert (folder / "tiny-thing-1.2.3" / "src" / "lib.rs").is_file()
    assert registry.source in (folder / SOURCES).read_text()


def test_the_user_s_own_mirror_of_crates_io_is_used(
    engine: Engine, toolset: ToolchainImage, registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "cargo").mkdir()
    (tmp_path / "cargo" / "config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "mirror"\n[source.mirror]\n'
        f'registry = "{registry.source}"\n'
    )
    folder = fetched(engine, toolset, CRATES_IO, tmp_path / "log")
    assert [path.name for path in folder.iterdir()] == ["tiny-thing-1.2.3"]
    assert "/dl/tiny-thing/1.2.3" in registry.asked


def test_a_registry_of_the_matrix_that_does_not_answer_is_no_fault_of_the_commit(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    closed = "sparse+http://127.0.0.1:9/"
    trusting = replace(toolset, registries=frozenset({closed}))
    with pytest.raises(UnreachableError):
        fetched(engine, trusting, closed, tmp_path / "log")
