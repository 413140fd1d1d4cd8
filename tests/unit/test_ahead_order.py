"""What is built ahead, and in which order; with real builds in tests/integration/test_ahead.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dsbisect.ahead import Ahead
from dsharness.engine import Engine
from dsharness.waiting import Deadline, wait_until


def no_containers(*_: str, **__: Any) -> SimpleNamespace:
    return SimpleNamespace(ok=True, stdout="")


@dataclass
class Shop:
    """Builds one thing after the other, each when it is let."""

    begun: list[str] = field(default_factory=list)
    let: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def make(self, candidate: str) -> None:
        self.begun.append(candidate)
        self.let.acquire()

    def wait_for(self, *candidates: str) -> None:
        wait_until(
            lambda: self.begun == list(candidates) or None, Deadline.after(10), what="the builds"
        )


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def ahead(shop: Shop) -> Iterator[Ahead]:
    made = Ahead(cast("Engine", SimpleNamespace(podman=no_containers)), shop.make)
    yield made
    for _ in range(9):
        shop.let.release()
    made.close()


def test_likelier_ones_come_first_and_no_more_than_two(ahead: Ahead, shop: Shop) -> None:
    ahead.want(["a", "b", "c"])
    shop.wait_for("a")
    shop.let.release()
    shop.wait_for("a", "b")
    shop.let.release()
    shop.let.release()
    ahead.want(["d"])
    shop.wait_for("a", "b", "d")


def test_what_is_wanted_no_more_is_not_begun(ahead: Ahead, shop: Shop) -> None:
    ahead.want(["a", "b"])
    shop.wait_for("a")
    ahead.want(["c"])
    shop.let.release()
    shop.wait_for("a", "c")


def test_nothing_more_is_begun_for_what_is_wanted_now(ahead: Ahead, shop: Shop) -> None:
    ahead.want(["a", "b"])
    shop.wait_for("a")
    ahead.want([])
    shop.let.release()
    ahead.want(["c"])
    shop.wait_for("a", "c")


def test_the_same_wish_twice_is_one(ahead: Ahead, shop: Shop) -> None:
    ahead.want(["a"])
    shop.wait_for("a")
    ahead.want(["a"])
    shop.let.release()
    ahead.want(["b"])
    shop.wait_for("a", "b")
