"""What is built ahead stands still while something is measured, and goes on afterwards."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from benches import MATRIX
from small_trees import small_tree

from dsbisect.ahead import Ahead
from dsbuilds.drivers.tree import Order, build_tree
from dsbuilds.keeping import builds_home
from dsbuilds.toolchains.images import shop_of
from dsbuilds.toolchains.needs import needs_of
from dsharness.engine import Engine
from dsharness.ownership import found
from dsharness.waiting import Deadline, wait_until

TICK = "for i in $$(seq 600); do echo $$i >> /build/ticks; sleep 0.1; done"


def test_a_build_ahead_is_frozen_and_ended(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain = next(each for each in MATRIX.toolchains if each.id == "debian-13")
    shop = shop_of(engine, MATRIX, toolchain, progress=print)
    for module in ("dsharness.paths", "dsbuilds.keeping", "dsbuilds.trees"):
        monkeypatch.setattr(f"{module}.cache_home", lambda: tmp_path / "cache")
    tree = small_tree(tmp_path / "source", TICK)
    order = Order(tree=tree, needs=needs_of(tree.read), shop=shop)
    failures: list[str] = []

    def make(candidate: str) -> None:
        try:
            build_tree(engine, order, progress=print)
        except Exception as error:
            failures.append(str(error))
            raise

    ticks = builds_home() / ".work" / shop.key / "build" / "ticks"

    def count() -> int:
        return len(ticks.read_text(encoding="utf-8").split()) if ticks.exists() else 0

    ahead = Ahead(engine, make)
    try:
        ahead.want(["one"])
        ahead.want(["one"])  # asked for once is enough
        wait_until(lambda: count() or None, Deadline.after(60), what="the build to begin")
        with ahead.quiet():
            frozen = count()
            time.sleep(2)
            assert count() <= frozen + 1
        wait_until(
            lambda: True if count() > frozen + 5 else None, Deadline.after(20),
            what="the build to go on",
        )  # fmt: skip
    finally:
        begun = time.monotonic()
        ahead.close()
    assert time.monotonic() - begun < 20  # nobody waits for what nobody wants
    # One that a killed session left behind is nobody's here.
    assert not [box.name for box in found(engine) if box.owned and "dsbisect-build-" in box.name]
    assert len(failures) == 1
    # It was ended, which says nothing of the source: nothing is remembered against it.
    assert list(builds_home().glob("*.failed")) == []


def test_nothing_to_do_costs_nothing(engine: Engine) -> None:
    ahead = Ahead(engine, lambda candidate: None)
    with ahead.quiet():
        pass
    ahead.close()
