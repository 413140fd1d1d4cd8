"""A commit's Makefile is untrusted code: what it may not do, tried for real."""

from __future__ import annotations

import http.server
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX
from small_trees import SERVER, small_tree

from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.toolchains.needs import needs_of
from dsbuilds.toolchains.toolchain_choice import fitting
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import OWNER, owner_tag
from dsharness.errors import BuildError, DeadlineError
from dsharness.model import Build

pytestmark = pytest.mark.whole

MIB = 1024**2


@pytest.fixture(scope="module")
def toolset(engine: Engine) -> ToolchainImage:
    toolchain = next(each for each in MATRIX.toolchains if each.id == "debian-13")
    return toolset_of(engine, MATRIX, toolchain, progress=print)


@pytest.fixture(autouse=True)
def builds_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolset: ToolchainImage
) -> None:
    """Nothing that was built or failed before is found again."""
    monkeypatch.setattr("dsharness.paths.cache_home", lambda: tmp_path / "cache")
    for module in ("dsbuilds.build_cache", "dsbuilds.sources.source_tree"):
        monkeypatch.setattr(f"{module}.cache_home", lambda: tmp_path / "cache")


def build(
    engine: Engine,
    toolset: ToolchainImage,
    folder: Path,
    *recipe: str,
    limits: Limits | None = None,
) -> Build:
    tree = small_tree(folder / "source", *recipe)
    needs = needs_of(tree.read)
    assert fitting(needs, MATRIX.toolchains)
    order = TreeOrder(tree=tree, needs=needs, toolset=toolset, limits=limits or Limits())
    try:
        return build_tree(engine, order, progress=print)
    finally:
        own = f"label={OWNER}={owner_tag(os.getpid())}"
        assert "build" not in engine.must("ps", "--all", "--filter", own, "--format", "{{.Names}}")


@pytest.fixture
def listener() -> Iterator[int]:
    """A server on this machine's loopback; nothing may reach it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_a_small_source_is_built(engine: Engine, toolset: ToolchainImage, tmp_path: Path) -> None:
    made = build(engine, toolset, tmp_path)
    server = Path(made.folder) / "install" / "opt" / "dirsrv" / "sbin" / "ns-slapd"
    assert server.read_text(encoding="utf-8").startswith("#!/bin/sh")


def test_what_a_build_may_not_do(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path, listener: int
) -> None:
    """Each line of the recipe fails when the build can do what it tries."""
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    connect = f"import socket; socket.create_connection(('127.0.0.1', {listener}), 5)"
    build(
        engine, toolset, tmp_path,
        f'! python3 -c "{connect}"',
        'test "$$(ls /sys/class/net)" = lo',
        f"test ! -e {secret}",
        f"test ! -e {Path.cwd()}",
        "for place in /etc /usr/bin /opt /usr/libexec; do ! touch $$place/hostile || exit 1; done",
        "grep -q '^CapEff:.0000000000000000' /proc/self/status",
        "grep -q '^NoNewPrivs:.1' /proc/self/status",
        "! mount -t tmpfs tmpfs /tmp",
    )  # fmt: skip


def test_what_it_was_refused_is_told(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    with pytest.raises(UnbuildableError, match="Read-only file system"):
        build(engine, toolset, tmp_path, "touch /etc/hostile")


def test_a_file_that_grows_without_end(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    with pytest.raises(UnbuildableError, match="File too large"):
        build(engine, toolset, tmp_path, "head -c 20M /dev/zero > big",
              limits=Limits(file_bytes=8 * MIB))  # fmt: skip


def test_a_folder_that_grows_without_end(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    begun = time.monotonic()
    with pytest.raises(BuildError, match="of disk"):
        build(
            engine, toolset, tmp_path,
            "for i in $$(seq 1000); do head -c 4M /dev/zero > big$$i; sleep 0.05; done",
            limits=Limits(disk_bytes=100 * MIB, time_s=120),
        )  # fmt: skip
    assert time.monotonic() - begun < 100


def test_a_compiler_cache_that_grows_without_end(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    """It lies outside of the build's own folder, and is there for the next one too."""
    with pytest.raises(UnbuildableError, match="more than 20 MiB of disk"):
        build(engine, toolset, tmp_path, "head -c 40M /dev/zero > /build/ccache/big; sleep 30",
              limits=Limits(cache_bytes=20 * MIB))  # fmt: skip
    assert not list((tmp_path / "cache" / "builds" / ".ccache").rglob("big"))


def test_memory_without_end(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is left in the folder where the lab was called."""
    if not engine.limits_memory:
        pytest.skip("this engine bounds no memory")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(UnbuildableError):
        build(engine, toolset, tmp_path, "head -c 900M /dev/zero | tail -c 900M > /dev/null",
              limits=Limits(memory="256m"))  # fmt: skip
    assert list(here.iterdir()) == []


def test_processes_without_end(engine: Engine, toolset: ToolchainImage, tmp_path: Path) -> None:
    with pytest.raises(UnbuildableError):
        build(
            engine, toolset, tmp_path,
            "for i in $$(seq 200); do sleep 30 & done; wait",
            limits=Limits(processes=60, time_s=60),
        )  # fmt: skip


def test_a_build_that_hangs(engine: Engine, toolset: ToolchainImage, tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(DeadlineError, match="longer than"):
        build(engine, toolset, tmp_path, "sleep 600", limits=Limits(time_s=8))
    assert time.monotonic() - begun < 90


def test_an_install_folder_that_is_a_link(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    """What a link leads to on the host is neither taken nor written."""
    target = tmp_path / "target"
    (target / "opt" / "dirsrv" / "sbin").mkdir(parents=True)
    (target / "opt" / "dirsrv" / "sbin" / "ns-slapd").write_text("host's", encoding="utf-8")
    trick = f"(while :; do rm -rf /build/install; ln -sfn {target} /build/install; done) &"
    with pytest.raises(BuildError):
        build(engine, toolset, tmp_path, f"{trick} true")
    assert sorted(path.name for path in target.rglob("*")) == ["dirsrv", "ns-slapd", "opt", "sbin"]


@pytest.mark.parametrize(
    "recipe",
    [
        "rm -rf ldap && ln -s {target} ldap",
        "mv /build/source /build/moved && ln -s {target} /build/source; cd /build/moved",
        "ln -s {target} /build/last; ln -s {target} /build/cargo-home",
    ],
    ids=["in the source", "in its place", "next to it"],
)
def test_the_next_source_is_written_through_no_link(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path, recipe: str
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    act = recipe.format(target=target)
    build(engine, toolset, tmp_path, f"test -e acted || {{ touch acted; {act}; }}")
    again = small_tree(tmp_path / "source", "true").with_files({"ldap/servers/new.c": "new\n"})
    order = TreeOrder(tree=again, needs=needs_of(again.read), toolset=toolset)
    build_tree(engine, order, progress=print)
    assert list(target.iterdir()) == []
    source = tmp_path / "cache" / "builds" / ".work" / f"{toolset.key}-0" / "build" / "source"
    assert (source / "ldap" / "servers" / "new.c").read_text(encoding="utf-8") == "new\n"
    assert not source.is_symlink()


PLANT = """\
cat >Makefile <<'EOF'
all:
install:
\tmkdir -p $(DESTDIR)/opt/dirsrv/sbin
\techo forged >$(DESTDIR)/opt/dirsrv/sbin/ns-slapd
EOF
"""


@pytest.mark.parametrize("clean", [False, True], ids=["on it", "from nothing"])
def test_a_makefile_that_a_commit_plants_decides_no_build_from_nothing(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path, clean: bool
) -> None:
    """The source's own folder is where increments share what configure made: a known limit."""
    both = small_tree(tmp_path / "source", "sh ./act")
    for name, act in (("hostile", PLANT), ("next", "true\n")):
        tree = both.with_files({"act": f"{act}# {name} {secrets.token_hex(4)}\n"})
        order = TreeOrder(
            tree=tree, needs=needs_of(tree.read), toolset=toolset, clean=clean and name == "next"
        )
        made = build_tree(engine, order, progress=print)
    server = Path(made.folder) / "install" / "opt" / "dirsrv" / "sbin" / "ns-slapd"
    assert (server.read_text(encoding="utf-8") == SERVER) is clean


def test_what_a_build_closed_is_in_nobodys_way(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    shut = "test -e shut || { mkdir -p shut/in && touch shut/in/file && chmod 0 shut/in shut; }"
    build(engine, toolset, tmp_path, shut)
    build(engine, toolset, tmp_path, "test ! -e shut")


def test_unchanged_files_are_not_built_again(
    engine: Engine, toolset: ToolchainImage, tmp_path: Path
) -> None:
    """`make` sees what changed, and nothing else."""
    rule = "main.o: ldap/servers/slapd/main.c; echo made >> main.o"
    for text, lines in (("one", 1), ("one", 1), ("two", 2)):
        files = {"rule.mk": f"{rule}\n", "ldap/servers/slapd/main.c": f"/* {text} */\n"}
        tree = small_tree(tmp_path / "source", "sh ./act").with_files(
            {**files, "act": f"make -f rule.mk main.o && test $(wc -l < main.o) = {lines}\n"
                             f"# {text} {secrets.token_hex(4)}\n"}
        )  # fmt: skip
        build_tree(
            engine, TreeOrder(tree=tree, needs=needs_of(tree.read), toolset=toolset), progress=print
        )
