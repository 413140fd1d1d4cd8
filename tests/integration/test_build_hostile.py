"""A commit's Makefile is somebody's program: what it may not do, tried for real."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX
from small_trees import small_tree

from dsbuilds.confinement import Limits
from dsbuilds.drivers.tree import Order, build_tree
from dsbuilds.failures import UnbuildableError
from dsbuilds.toolchains.choosing import fitting
from dsbuilds.toolchains.images import Shop, shop_of
from dsbuilds.toolchains.needs import needs_of
from dsharness.engine import Engine
from dsharness.errors import BuildError, DeadlineError
from dsharness.model import Build
from dsharness.ownership import found

MIB = 1024**2


@pytest.fixture(scope="module")
def shop(engine: Engine) -> Shop:
    toolchain = next(each for each in MATRIX.toolchains if each.id == "debian-13")
    return shop_of(engine, MATRIX, toolchain, progress=print)


@pytest.fixture(autouse=True)
def builds_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: Shop) -> None:
    """Nothing that was built or failed before is found again."""
    monkeypatch.setattr("dsharness.paths.cache_home", lambda: tmp_path / "cache")
    for module in ("dsbuilds.keeping", "dsbuilds.trees"):
        monkeypatch.setattr(f"{module}.cache_home", lambda: tmp_path / "cache")


def build(
    engine: Engine, shop: Shop, folder: Path, *recipe: str, limits: Limits | None = None
) -> Build:
    tree = small_tree(folder / "source", *recipe)
    needs = needs_of(tree.read)
    assert fitting(needs, MATRIX.toolchains)
    order = Order(tree=tree, needs=needs, shop=shop, limits=limits or Limits())
    before = {box.name for box in found(engine)}
    try:
        return build_tree(engine, order, progress=print)
    finally:
        left = {box.name for box in found(engine)} - before
        assert not [name for name in left if "build" in name]


@pytest.fixture
def listener() -> Iterator[int]:
    """A server on this machine's loopback; nobody may ask it anything."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_a_small_source_is_built(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    made = build(engine, shop, tmp_path)
    server = Path(made.folder) / "install" / "opt" / "dirsrv" / "sbin" / "ns-slapd"
    assert server.read_text(encoding="utf-8").startswith("#!/bin/sh")


def test_what_a_build_may_not_do(engine: Engine, shop: Shop, tmp_path: Path, listener: int) -> None:
    """Each line of the recipe fails when the build can do what it tries."""
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    connect = f"import socket; socket.create_connection(('127.0.0.1', {listener}), 5)"
    build(
        engine, shop, tmp_path,
        f'! python3 -c "{connect}"',
        'test "$$(ls /sys/class/net)" = lo',
        f"test ! -e {secret}",
        f"test ! -e {Path.cwd()}",
        "for place in /etc /usr/bin /opt /usr/libexec; do ! touch $$place/hostile || exit 1; done",
        "grep -q '^CapEff:.0000000000000000' /proc/self/status",
        "grep -q '^NoNewPrivs:.1' /proc/self/status",
        "! mount -t tmpfs tmpfs /tmp",
    )  # fmt: skip


def test_what_it_was_refused_is_told(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(UnbuildableError, match="Read-only file system"):
        build(engine, shop, tmp_path, "touch /etc/hostile")


def test_a_file_that_grows_without_end(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(UnbuildableError, match="File too large"):
        build(engine, shop, tmp_path, "head -c 20M /dev/zero > big",
              limits=Limits(file_bytes=8 * MIB))  # fmt: skip


def test_a_folder_that_grows_without_end(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(BuildError, match="of disk"):
        build(
            engine, shop, tmp_path,
            "for i in $$(seq 1000); do head -c 4M /dev/zero > big$$i; sleep 0.05; done",
            limits=Limits(disk_bytes=100 * MIB, time_s=120),
        )  # fmt: skip
    assert time.monotonic() - begun < 100


def test_memory_without_end(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    if not engine.limits_memory:
        pytest.skip("this engine bounds no memory")
    with pytest.raises(UnbuildableError):
        build(engine, shop, tmp_path, "head -c 900M /dev/zero | tail -c 900M > /dev/null",
              limits=Limits(memory="256m"))  # fmt: skip


def test_processes_without_end(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(UnbuildableError):
        build(
            engine, shop, tmp_path,
            "for i in $$(seq 200); do sleep 30 & done; wait",
            limits=Limits(processes=60, time_s=60),
        )  # fmt: skip


def test_a_build_that_hangs(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(DeadlineError, match="longer than"):
        build(engine, shop, tmp_path, "sleep 600", limits=Limits(time_s=20))
    assert time.monotonic() - begun < 90


def test_an_install_folder_that_is_a_link(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    """What a link leads to on the host is neither taken nor written."""
    target = tmp_path / "target"
    (target / "opt" / "dirsrv" / "sbin").mkdir(parents=True)
    (target / "opt" / "dirsrv" / "sbin" / "ns-slapd").write_text("host's", encoding="utf-8")
    trick = f"(while :; do rm -rf /build/install; ln -sfn {target} /build/install; done) &"
    with pytest.raises(BuildError):
        build(engine, shop, tmp_path, f"{trick} true")
    assert sorted(path.name for path in target.rglob("*")) == ["dirsrv", "ns-slapd", "opt", "sbin"]


def test_a_source_folder_that_is_a_link(engine: Engine, shop: Shop, tmp_path: Path) -> None:
    """The next source is written into the folder, not through the link that the last one left."""
    target = tmp_path / "target"
    target.mkdir()
    build(engine, shop, tmp_path, f"rm -rf ldap && ln -s {target} ldap")
    again = small_tree(tmp_path / "source", "true").with_files({"ldap/servers/new.c": "new\n"})
    order = Order(tree=again, needs=needs_of(again.read), shop=shop)
    build_tree(engine, order, progress=print)
    assert list(target.iterdir()) == []
