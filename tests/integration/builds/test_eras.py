"""One small tree for each era, built for real: autoreconf, configure, make, link, and a start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benches import MATRIX
from era_trees import era_tree

from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.drivers.tree_image import layered, runtime_for
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_choice import BuildWay, first_that_works, ways_of
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.container import running
from dsharness.containers.engine import Engine
from dsharness.model import Build, Image

TOLD: list[str] = []


@pytest.fixture(autouse=True)
def builds_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was built before is found again; images are."""
    TOLD.clear()
    cache = tmp_path_factory.getbasetemp() / "era-builds"
    for module in ("dsbuilds.build_cache", "dsbuilds.sources.source_tree"):
        monkeypatch.setattr(f"{module}.cache_home", lambda: cache)


def toolset(engine: Engine, way: BuildWay) -> ToolchainImage:
    return toolset_of(engine, MATRIX, way.toolchain, progress=TOLD.append)


def built(engine: Engine, tree: Tree) -> tuple[Build, ToolchainImage, BuildWay]:
    def make(way: BuildWay) -> tuple[Build, ToolchainImage]:
        at = toolset(engine, way)
        order = TreeOrder(tree=tree, needs=way.needs, toolset=at)
        return build_tree(engine, order, progress=TOLD.append), at

    (made, at), way = first_that_works(ways_of(tree.read, MATRIX.toolchains), make, TOLD.append)
    return made, at, way


def started(engine: Engine, image: Image, tmp_path: Path) -> str:
    """What the server of a build says when it is run in the image that serves it."""
    with running(
        engine, image.reference, "sleep", "infinity", purpose="era", log=tmp_path / "log"
    ) as box:
        return box.must("/opt/dirsrv/sbin/ns-slapd", what="start it")


@pytest.mark.parametrize(
    ("era", "toolchain", "rust"),
    [
        ("1.4.3.24", "debian-12", False),
        ("2.0.5", "debian-11", True),
        ("2.0.16", "debian-12", True),
        ("2.2.1", "debian-12", True),
        ("2.2.3", "debian-12", True),
        ("2.3.2", "debian-12", True),
        ("3.2", "debian-12", True),
    ],
)
def test_every_era_is_built_and_starts(
    engine: Engine, tmp_path: Path, era: str, toolchain: str, *, rust: bool
) -> None:
    made, at, way = built(engine, era_tree(era, tmp_path / "source"))
    assert (way.toolchain.id, way.left_out) == (toolchain, frozenset())
    assert not any("from nothing: what" in line for line in TOLD), TOLD
    said = " ".join(made.provenance.notes)
    assert ("without Rust" in said) is not rust
    image = layered(engine, made, at, f"small-{era}", serves="389-ds", progress=TOLD.append)
    assert started(engine, image, tmp_path) == f"rust {int(rust)}\n"


@pytest.mark.parametrize(
    ("era", "without", "said"),
    [
        ("2.0.16", ("LIBS=", "LINK_ALL_DEPLIBS"), "undefined reference to .BN_new"),
        ("2.2.1", ("LINK_ALL_DEPLIBS",), "undefined reference"),
        ("2.3.2", ("RUSTFLAGS",), "variable does not need to be mutable"),
    ],
)
def test_what_an_era_needs_is_needed(
    engine: Engine, tmp_path: Path, era: str, without: tuple[str, ...], said: str
) -> None:
    source = era_tree(era, tmp_path / "source", ldap__other=era)
    way = ways_of(source.read, MATRIX.toolchains)[0]
    settings, flags = (
        tuple(each for each in given if not each.startswith(without))
        for given in (way.needs.settings, way.needs.flags)
    )
    assert len(settings + flags) == len(way.needs.settings + way.needs.flags) - len(without)
    order = TreeOrder(
        tree=source,
        needs=replace(way.needs, settings=settings, flags=flags),
        toolset=toolset(engine, way),
        clean=True,
    )
    with pytest.raises(UnbuildableError, match=said):
        build_tree(engine, order, progress=TOLD.append)


def test_optional_rust_that_no_toolchain_can_build_is_left_out_and_said(
    engine: Engine, tmp_path: Path
) -> None:
    """Here its lock does not name what its crate asks for."""
    source = era_tree("2.0.5", tmp_path / "source")
    crate = "src/librslapd/Cargo.toml"
    other = source.with_files({crate: (source.read(crate) or "").replace('"0.1"', '"1"')})
    only = tuple(each for each in MATRIX.toolchains if each.id == "debian-11")

    def make(way: BuildWay) -> Build:
        order = TreeOrder(tree=other, needs=way.needs, toolset=toolset(engine, way))
        return build_tree(engine, order, progress=TOLD.append)

    made, way = first_that_works(ways_of(other.read, only), make, TOLD.append)
    assert way.left_out == {"Rust"}
    assert any("without Rust" in note for note in made.provenance.notes)
    assert any("trying the toolchain debian-11, without Rust" in line for line in TOLD), TOLD


def test_a_library_that_no_package_has_is_told_at_once(engine: Engine, tmp_path: Path) -> None:
    """The tree's own, taken away after the link: nothing else can bring it."""
    made, at, _ = built(engine, era_tree("2.0.16", tmp_path / "source"))
    library = Path(made.folder) / "install/opt/dirsrv/lib"
    for path in library.glob("libslapd.so*"):
        path.unlink()
    with pytest.raises(UnbuildableError, match=r"its server needs libslapd\.so\.0, which neither"):
        runtime_for(engine, Path(made.folder) / "install", at, TOLD.append)
