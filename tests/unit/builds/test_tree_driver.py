"""When a tree is built again from nothing, and what names its build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from era_trees import era_tree

from dsbuilds.drivers import tree as driver
from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.needs import needs_of
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.engine import Engine
from dsharness.model import Image

ENGINE = Engine(
    podman_version="4.3.1", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
SHOP = ToolchainImage(
    id="toy",
    reference="r",
    key="k",
    runtime=Image(candidate_id="r", reference="r", key="k"),
    tools={},
)
OWN = "dsbisect-stage\tmake\nmain.c: undefined reference to `slapi_ch_free'\n"
FOREIGN = "dsbisect-stage\tmake\npwdhash.c: undefined reference to `BN_new'\n"


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], TreeOrder]:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))

    def make(era: str) -> TreeOrder:
        source = era_tree(era, tmp_path / era, README=era)
        return TreeOrder(tree=source, needs=needs_of(source.read), toolset=SHOP)

    return make


class Runs(list[tuple[str, ...]]):
    """What every run of the script was given; each fails at a link."""

    said = OWN


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    seen = Runs()

    def run(*args: object, build: Path, **_: Any) -> str:
        (build / "source").mkdir(exist_ok=True)
        seen.append(tuple(str(each) for each in args[3:]))
        return seen.said

    monkeypatch.setattr(driver, "confined_run", run)
    monkeypatch.setattr(driver, "crates_for", lambda *_: Path("/nowhere"))
    return seen


def failed(order: TreeOrder) -> list[str]:
    told: list[str] = []
    with pytest.raises(UnbuildableError, match="undefined reference"):
        build_tree(ENGINE, order, progress=told.append)
    return told


@pytest.mark.whole
def test_only_what_was_built_upon_another_is_built_from_nothing_too(
    order: Callable[[str], TreeOrder], runs: Runs
) -> None:
    assert failed(order("2.3.2")) == ["building"]
    assert len(runs) == 1
    assert failed(order("2.2.1"))[1].startswith("building from nothing: what an earlier build")
    assert len(runs) == 3


def test_nothing_is_built_twice_for_what_no_earlier_build_left(
    order: Callable[[str], TreeOrder], runs: Runs
) -> None:
    """Its own code calls it, but only a library has it."""
    runs.said = FOREIGN
    failed(order("2.3.2"))
    assert failed(order("2.2.1")) == ["building"]
    assert len(runs) == 2


@pytest.mark.whole
def test_what_an_earlier_build_left_in_the_place_of_a_mount_is_removed(
    order: Callable[[str], TreeOrder], runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []

    def run(*_: object, build: Path, **__: object) -> str:
        seen.append({path.name for path in build.iterdir()})
        for place in (*driver.PLACES, "source"):
            (build / place / "planted").mkdir(parents=True, exist_ok=True)
        return runs.said

    monkeypatch.setattr(driver, "confined_run", run)
    failed(order("2.3.2"))
    failed(order("2.2.1"))
    assert seen[1] == {"source"}


def test_flags_of_the_build_and_of_configure_are_told_apart(
    order: Callable[[str], TreeOrder], runs: Runs
) -> None:
    failed(replace(order("2.2.1"), clean=True))
    (given,) = runs
    settings, flags = given[2 : given.index("--")], given[given.index("--") + 1 :]
    assert settings == ("RUSTFLAGS=--cap-lints warn", "LINK_ALL_DEPLIBS=yes")
    assert flags[0] == "--prefix=/opt/dirsrv"
    assert "--enable-rust" in flags


def test_what_decides_a_build_is_in_its_name(order: Callable[[str], TreeOrder]) -> None:
    first = order("2.2.1")
    needs = first.needs
    others = (
        replace(first, needs=replace(needs, settings=())),
        replace(first, needs=replace(needs, flags=needs.flags[:-1])),
        replace(first, needs=needs_of(first.tree.read, needs.optional)),
        replace(first, toolset=replace(SHOP, key="other")),
        replace(first, clean=True),
    )
    assert len({first.key, *(other.key for other in others)}) == 1 + len(others)
    assert replace(first, needs=replace(needs, notes=("said",))).key == first.key


def test_a_whole_tree_is_a_build_of_its_own_and_is_given_every_file(
    order: Callable[[str], TreeOrder],
    runs: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_out: list[bool] = []

    def archived(*_: object, include: Callable[[str], bool] | None, **__: object) -> None:
        left_out.append(include is not None and not include("dirsrvtests/one.py"))

    monkeypatch.setattr(driver, "archived", archived)
    usual = order("2.3.2")
    whole = replace(usual, clean=True, whole=True)
    assert len({usual.key, replace(usual, clean=True).key, whole.key}) == 3
    for each in (usual, whole):
        failed(each)
    assert left_out == [True, False]
    assert len(runs) == 2
