"""Builds of one source in several layouts."""

from __future__ import annotations

from pathlib import Path

import pytest
from benches import MATRIX
from era_trees import era_tree

from dsbuilds.build_cache import builds_home
from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.drivers.tree_image import layered
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_choice import choices_of
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.container import running
from dsharness.containers.engine import Engine
from dsharness.model import Build

pytestmark = pytest.mark.whole

SLAPD, DBSCAN = "ldap/servers/slapd/slapd.c", "ldap/servers/slapd/dbscan.c"


@pytest.fixture(autouse=True)
def builds_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was built before is found again; images are."""
    cache = tmp_path_factory.getbasetemp() / "variant-builds"
    for module in ("dsbuilds.build_cache", "dsbuilds.sources.source_tree"):
        monkeypatch.setattr(f"{module}.cache_home", lambda: cache)


def ordered(
    engine: Engine,
    tree: Tree,
    *,
    layout: int = 0,
    clean: bool = False,
    along: tuple[int, ...] = (),
) -> TreeOrder:
    choice = choices_of(tree.read, MATRIX.toolchains)[0]
    toolset = toolset_of(engine, MATRIX, choice.toolchain, progress=print)
    return TreeOrder(
        tree=tree, needs=choice.needs, toolset=toolset, layout=layout, clean=clean, along=along,
    )  # fmt: skip


def built(engine: Engine, order: TreeOrder) -> Build:
    return build_tree(engine, order, progress=print)


def ran(engine: Engine, made: Build, toolset: ToolchainImage, folder: Path) -> str:
    """What its server says."""
    image = layered(engine, made, toolset, "variant", serves="389-ds", progress=print)
    with running(
        engine, image.reference, "sleep", "infinity", purpose="variant", log=folder / "log"
    ) as box:
        return box.must("/opt/dirsrv/sbin/ns-slapd", what="start it")


def library(made: Build) -> bytes:
    return (Path(made.folder) / "install/opt/dirsrv/lib/libslapd.so.0.1.0").read_bytes()


def test_a_layout_is_the_same_server_in_another_order(engine: Engine, tmp_path: Path) -> None:
    tree = era_tree("3.2", tmp_path / "source")
    orders = [ordered(engine, tree, layout=layout) for layout in (0, 1, 2)]
    made = [built(engine, order) for order in orders]
    assert len({library(build) for build in made}) == 3
    for build in made:
        assert ran(engine, build, orders[0].toolset, tmp_path) == "rust 1\n"
    again = tree.with_files({"README.md": "the same server"})
    assert ordered(engine, again, layout=2).key == made[2].key


def test_layouts_of_a_clean_build_are_made_along_with_it(engine: Engine, tmp_path: Path) -> None:
    tree = era_tree("3.2", tmp_path / "source", README="another one")
    orders = [
        ordered(engine, tree, layout=layout, clean=True, along=(3 - layout,)) for layout in (1, 2)
    ]
    one = built(engine, orders[0])
    said: list[str] = []
    two = build_tree(engine, orders[1], progress=said.append)
    assert said == []  # it was there
    assert two.provenance.seconds < one.provenance.seconds
    assert library(one) != library(two)
    for build in (one, two):
        assert build.provenance.clean
        assert ran(engine, build, orders[0].toolset, tmp_path) == "rust 1\n"
    assert not list((builds_home() / ".work").glob("clean-*"))
