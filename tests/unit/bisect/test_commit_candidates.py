"""Sources as candidates: in which toolchain, with what of them, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from era_trees import era_tree
from shipped import MATRIX

from dsbisect.commits import commit_candidates as supplying
from dsbisect.commits.commit_candidates import SourceSupply
from dsbuilds.drivers.tree import TreeOrder
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.engine import Engine
from dsharness.errors import BuildError
from dsharness.model import Build, DriverName, Image, Provenance, Toolchain

ENGINE = Engine(
    podman_version="4.3.1", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip


class Toy:
    """Builds nothing, and fails where it should."""

    def __init__(self) -> None:
        self.orders: list[TreeOrder] = []
        self.unfit: dict[str, str] = {}  # tree -> the toolchain whose compiler refuses it
        self.failing: dict[str, bool] = {}  # tree -> whether the toolchain may be wrong, with Rust

    def toolset(
        self, _: Engine, __: object, toolchain: Toolchain, *, progress: object
    ) -> ToolchainImage:
        del progress
        row = Image(candidate_id=toolchain.row, reference="r", key=toolchain.row)
        return ToolchainImage(
            id=toolchain.id, reference="s", key=toolchain.id, runtime=row, tools={}
        )

    def build(self, _: Engine, order: TreeOrder, *, progress: object) -> Build:
        del progress
        self.orders.append(order)
        if order.tree.id in self.failing and "--enable-rust" in order.needs.flags:
            wrong = self.failing[order.tree.id]
            raise UnbuildableError("unbuildable: its crates are too new", toolchain=wrong)
        if self.unfit.get(order.tree.id) == order.toolset.id:
            raise UnbuildableError("unbuildable: slap.h does not compile", compiler=True)
        provenance = Provenance(
            driver=DriverName.TREE, source="s", tree=order.tree.id, toolchain=order.toolset.id,
            notes=order.needs.notes, clean=False, seconds=1.0, built_at="now", log="log",
        )  # fmt: skip
        return Build(key=order.tree.id, folder="f", content="c", provenance=provenance)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    toy = Toy()
    monkeypatch.setattr(supplying, "build_tree", toy.build)
    monkeypatch.setattr(supplying, "toolset_of", toy.toolset)
    return toy


def supply_of(tmp_path: Path, *eras: str, first: str = "debian-12") -> SourceSupply:
    toolchains = sorted(MATRIX.toolchains, key=lambda each: each.id != first)
    supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=tuple(toolchains))
    for era in eras:
        supply.add(era, era_tree(era, tmp_path / era, README=era))
    return supply


def built(supply: SourceSupply, candidate: str) -> tuple[str, list[str]]:
    told: list[str] = []
    _, toolset = supply.build(candidate, told.append)
    return toolset.id, told


def test_a_range_of_two_eras_is_built_by_one_toolchain(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "2.2.1", "2.2.3")
    assert [built(supply, name)[0] for name in ("2.2.1", "2.2.3")] == ["debian-12", "debian-12"]
    assert supply.remarks == ()
    assert len(toy.orders) == 2


def test_where_one_end_needs_another_toolchain_all_are_built_by_it(
    toy: Toy, tmp_path: Path
) -> None:
    supply = supply_of(tmp_path, "2.2.3", "2.3.2", first="debian-13")
    toy.unfit[supply.specimens["2.3.2"].tree.id] = "debian-13"
    assert [built(supply, name)[0] for name in ("2.2.3", "2.3.2")] == ["debian-13", "debian-12"]
    before = dict(supply.identities)
    assert supply.left() == ("2.2.3",)
    assert built(supply, "2.2.3")[0] == "debian-12"
    assert supply.left() == ()
    assert supply.remarks == ()
    assert supply.identities.keys() == before.keys()
    assert all(supply.identities[name] != before[name] for name in before)


def test_what_the_other_toolchain_cannot_build_stays_where_it_is(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "2.0.5", "3.2", first="debian-13")
    supply.toolchains = tuple(
        each.model_copy(update={"offers": tuple({*each.offers} - {"cargo-lock-4"})})
        if each.id == "debian-11" else each
        for each in supply.toolchains
    )  # fmt: skip
    assert [built(supply, name)[0] for name in ("2.0.5", "3.2")] == ["debian-11", "debian-13"]
    assert supply.left() == ()
    assert next(each.id for each in supply.toolchains) == "debian-13"


def test_once_the_ends_stand_a_broken_commit_is_tried_once(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "2.2.3", first="debian-13")
    toy.unfit[supply.specimens["2.2.3"].tree.id] = "debian-13"
    supply.left()
    with pytest.raises(UnbuildableError, match="does not compile"):
        built(supply, "2.2.3")


def test_another_toolchain_is_told_with_the_answer(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "2.0.5", "2.2.3")
    assert [built(supply, name)[0] for name in ("2.0.5", "2.2.3")] == ["debian-11", "debian-12"]
    assert supply.remarks == (
        "built by debian-11, the others by debian-12: their libraries differ too: 2.0.5",
    )
    assert toy.failing == {}


def test_an_end_whose_optional_rust_cannot_be_built_goes_without(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "2.0.16")
    toy.failing[supply.specimens["2.0.16"].tree.id] = True
    name, told = built(supply, "2.0.16")
    assert name == "debian-12"
    assert told[-1].endswith("trying the toolchain debian-12, without Rust")
    assert supply.remarks == ("built without Rust: it is optional, and could not be built: 2.0.16",)


def test_rust_that_the_commit_itself_broke_is_not_left_out(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "2.0.16")
    toy.failing[supply.specimens["2.0.16"].tree.id] = False
    with pytest.raises(UnbuildableError, match="too new"):
        built(supply, "2.0.16")


def test_nothing_goes_without_rust_where_others_have_it(toy: Toy, tmp_path: Path) -> None:
    """It would be another server, with another default scheme perhaps."""
    supply = supply_of(tmp_path, "2.0.16", "2.2.1")
    toy.failing[supply.specimens["2.2.1"].tree.id] = True
    built(supply, "2.0.16")
    with pytest.raises(UnbuildableError, match="too new"):
        built(supply, "2.2.1")
    assert all("--enable-rust" in order.needs.flags for order in toy.orders)


def test_a_tree_without_rust_is_no_reason_to_keep_it(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "1.4.3.24", "2.0.16")
    toy.failing[supply.specimens["2.0.16"].tree.id] = True
    built(supply, "1.4.3.24")
    assert built(supply, "2.0.16")[0] == "debian-12"


def test_where_no_toolchain_has_what_its_rust_wants_it_is_told(toy: Toy, tmp_path: Path) -> None:
    supply = supply_of(tmp_path, "2.0.16", "2.0.5")
    supply.toolchains = tuple(
        each for each in supply.toolchains if "openssl-1.1" not in each.offers
    )
    built(supply, "2.0.16")
    with pytest.raises(BuildError, match="no toolchain fits it with Rust, which others"):
        built(supply, "2.0.5")
    assert len(toy.orders) == 1
