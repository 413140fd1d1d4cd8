"""What is built ahead stands still while something is measured, and makes room for others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from benches import MATRIX
from small_trees import small_tree

from dsbisect.lab.builds_ahead import Ahead
from dsbuilds.build_cache import builds_home
from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.toolchains.needs import needs_of
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import OWNER, owner_tag
from dsharness.process.deadline import Deadline, wait_until

pytestmark = pytest.mark.whole

TICK = "for i in $$(seq 600); do echo $$i >> /build/ticks; sleep 0.1; done"


@dataclass
class Site:
    """Where trees are built ahead, the first of them without an end."""

    engine: Engine
    toolset: ToolchainImage
    folder: Path
    failed: list[str] = field(default_factory=list)

    def order(self, name: str, *recipe: str) -> TreeOrder:
        tree = small_tree(self.folder / name, *recipe)
        return TreeOrder(tree=tree, needs=needs_of(tree.read), toolset=self.toolset)

    def make(self, candidate: str) -> None:
        try:
            build_tree(self.engine, self.order(candidate, TICK), progress=print)
        except Exception as error:
            self.failed.append(f"{type(error).__name__}: {error}")
            raise

    @property
    def ticks(self) -> int:
        """Each is a tenth of a second of the build."""
        path = builds_home() / ".work" / self.toolset.key / "build" / "ticks"
        return len(path.read_text(encoding="utf-8").split()) if path.exists() else 0

    def until(self, said: Callable[[int], bool]) -> None:
        wait_until(
            lambda: True if said(self.ticks) else None,
            Deadline.after(300),
            what="the build to tick",
        )

    def left(self) -> list[str]:
        """Containers of this process; others of the machine may build too."""
        mine = f"label={OWNER}={owner_tag(os.getpid())}"
        listed = self.engine.must("ps", "--all", "--filter", mine, "--format", "{{.Names}}")
        return [name for name in listed.split() if "-build-" in name]


@pytest.fixture
def site(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    toolchain = next(each for each in MATRIX.toolchains if each.id == "debian-13")
    toolset = toolset_of(engine, MATRIX, toolchain, progress=print)
    for module in ("dsharness.paths", "dsbuilds.build_cache", "dsbuilds.sources.source_tree"):
        monkeypatch.setattr(f"{module}.cache_home", lambda: tmp_path / "cache")
    return Site(engine=engine, toolset=toolset, folder=tmp_path)


@pytest.fixture
def ahead(site: Site) -> Iterator[Ahead]:
    made = Ahead(site.make)
    yield made
    made.close()


def test_a_build_ahead_is_frozen_and_ended(site: Site, ahead: Ahead) -> None:
    ahead.want(["one"])
    ahead.want(["one"])  # asked for once is enough
    site.until(lambda ticks: ticks > 0)
    with ahead.quiet():
        frozen = site.ticks
        time.sleep(2)
        assert site.ticks <= frozen + 1
    site.until(lambda ticks: ticks > frozen + 5)
    begun = time.monotonic()
    ahead.close()
    assert time.monotonic() - begun < 20  # what is not needed is not waited for
    assert site.left() == []
    assert [said.split(":")[0] for said in site.failed] == ["StoppedError"]
    # It was ended, which says nothing of the source: nothing is remembered against it.
    assert list(builds_home().glob("*.failed")) == []


def test_a_build_that_is_just_being_started_does_not_run_into_a_sample(
    site: Site, ahead: Ahead
) -> None:
    """It had passed the gate when the sample began, and started its container a second later."""
    for wait_s in (0.0, 0.3, 0.6):
        ahead.want(["one"])
        time.sleep(wait_s)
        with ahead.quiet():
            standing = site.ticks
            time.sleep(1.5)
            assert site.ticks <= standing + 1
        ahead.make_room("another")
        assert site.left() == []


def test_what_is_wanted_does_not_wait_for_a_wrong_guess(site: Site, ahead: Ahead) -> None:
    ahead.want(["one"])
    site.until(lambda ticks: ticks > 0)
    begun = time.monotonic()
    ahead.make_room("two")
    assert site.left() == []
    assert time.monotonic() - begun < 15
    built = build_tree(site.engine, site.order("two"), progress=print)
    assert (Path(built.folder) / "install/opt/dirsrv/sbin/ns-slapd").is_file()


def test_where_containers_cannot_be_paused_nothing_is_built_ahead(
    site: Site, ahead: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsharness.containers.container.Container.pause", lambda _: False)
    ahead.want(["one"])
    site.until(lambda ticks: ticks > 0)
    with ahead.quiet():
        assert site.left() == []
    ahead.want(["two"])
    time.sleep(1)
    assert site.left() == []


def test_nothing_to_do_costs_nothing() -> None:
    ahead = Ahead(lambda candidate: None)
    with ahead.quiet():
        pass
    ahead.close()
