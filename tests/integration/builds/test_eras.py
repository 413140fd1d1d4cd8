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
from dsbuilds.toolchains.toolchain_choice import BuildChoice, choices_of, first_that_works
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


def toolset(engine: Engine, choice: BuildChoice) -> ToolchainImage:
    return toolset_of(engine, MATRIX, choice.toolchain, progress=TOLD.append)


def built(engine: Engine, tree: Tree) -> tuple[Build, ToolchainImage, BuildChoice]:
    def make(choice: BuildChoice) -> tuple[Build, ToolchainImage]:
        at = toolset(engine, choice)
        order = TreeOrder(tree=tree, needs=choice.needs, toolset=at)
        return build_tree(engine, order, progress=TOLD.append), at

    (made, at), choice = first_that_works(
        choices_of(tree.read, MATRIX.toolchains), make, TOLD.append
    )
    return made, at, choice


def started(engine: Engine, image: Image, tmp_path: Path) -> str:
    """What the server of a build says when it is run in the image that serves it."""
    with running(
        engine, image.reference, "sleep", "infinity", purpose="era", log=tmp_path / "log"
    ) as box:
        return box.must("/opt/dirsrv/sbin/ns-slapd", what="start it")


@pytest.mark.parametrize(
    ("era", "toolchain", "rust"),
    [
        pytest.param("1.4.3.24", "debian-12", False, marks=pytest.mark.whole),
        pytest.param("2.0.5", "debian-11", True, marks=pytest.mark.whole),
        pytest.param("2.0.16", "debian-12", True, marks=pytest.mark.whole),
        pytest.param("2.2.1", "debian-12", True, marks=pytest.mark.whole),
        pytest.param("2.2.3", "debian-12", True, marks=pytest.mark.whole),
        pytest.param("2.3.2", "debian-12", True, marks=pytest.mark.whole),
        ("3.2", "debian-12", True),
    ],
)
def test_every_era_is_built_and_starts(
    engine: Engine, tmp_path: Path, era: str, toolchain: str, *, rust: bool
) -> None:
    made, at, choice = built(engine, era_tree(era, tmp_path / "source"))
    assert (choice.toolchain.id, choice.left_out) == (toolchain, frozenset())
    assert not any("from nothing: what" in line for line in TOLD), TOLD
    said = " ".join(made.provenance.notes)
    assert ("without Rust" in said) is not rust
    image = layered(engine, made, at, f"small-{era}", serves="389-ds", progress=TOLD.append)
    assert started(engine, image, tmp_path) == f"rust {int(rust)}\n"


@pytest.mark.whole
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
    choice = choices_of(source.read, MATRIX.toolchains)[0]
    settings, flags = (
        tuple(each for each in given if not each.startswith(without))
        for given in (choice.needs.settings, choice.needs.flags)
    )
    assert len(settings + flags) == len(choice.needs.settings + choice.needs.flags) - len(without)
    order = TreeOrder(
        tree=source,
        needs=replace(choice.needs, settings=settings, flags=flags),
        toolset=toolset(engine, choice),
        clean=True,
    )
    with pytest.raises(UnbuildableError, match=said):
        build_tree(engine, order, progress=TOLD.append)


@pytest.mark.whole
def test_optional_rust_that_no_toolchain_can_build_is_left_out_and_said(
    engine: Engine, tmp_path: Path
) -> None:
    """Here its lock does not name what its crate asks for."""
    source = era_tree("2.0.5", tmp_path / "source")
    crate = "src/librslapd/Cargo.toml"
    other = source.with_files({crate: (source.read(crate) or "").replace('"0.1"', '"1"')})
    only = tuple(each for each in MATRIX.toolchains if each.id == "debian-11")

    def make(choice: BuildChoice) -> Build:
        order = TreeOrder(tree=other, needs=choice.needs, toolset=toolset(engine, choice))
        return build_tree(engine, order, progress=TOLD.append)

    made, choice = first_that_works(choices_of(other.read, only), make, TOLD.append)
    assert choice.left_out == {"Rust"}
    assert any("without Rust" in note for note in made.provenance.notes)
    assert any("trying the toolchain debian-11, without Rust" in line for line in TOLD), TOLD


@pytest.mark.whole
def test_a_library_that_no_package_has_is_told_at_once(engine: Engine, tmp_path: Path) -> None:
    """The tree's own, taken away after the link: nothing else can bring it."""
    made, at, _ = built(engine, era_tree("2.0.16", tmp_path / "source"))
    library = Path(made.folder) / "install/opt/dirsrv/lib"
    for path in library.glob("libslapd.so*"):
        path.unlink()
    with pytest.raises(UnbuildableError, match=r"its server needs libslapd\.so\.0, which neither"):
        runtime_for(engine, Path(made.folder) / "install", at, TOLD.append)
