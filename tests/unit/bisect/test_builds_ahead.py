"""What is built ahead, in which order; with real builds: tests/integration/builds/test_ahead.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from dsbisect.lab.builds_ahead import Ahead
from dsharness.process.brake import Brake, nap
from dsharness.process.deadline import Deadline, wait_until


@dataclass
class Shop:
    """Builds one thing after the other, each when it is let."""

    begun: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    let: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def make(self, candidate: str) -> None:
        self.begun.append(candidate)
        while not self.let.acquire(blocking=False):
            nap(0.01)
        self.made.append(candidate)

    def wait_for(self, *candidates: str) -> None:
        wait_until(
            lambda: self.begun == list(candidates) or None, Deadline.after(10), what="the builds"
        )


@pytest.fixture
def toolset() -> Shop:
    return Shop()


@pytest.fixture
def ahead(toolset: Shop) -> Iterator[Ahead]:
    made = Ahead(toolset.make)
    yield made
    made.close()


def test_likelier_ones_come_first_and_no_more_than_two(ahead: Ahead, toolset: Shop) -> None:
    ahead.want(["a", "b", "c"])
    toolset.wait_for("a")
    toolset.let.release()
    toolset.wait_for("a", "b")
    toolset.let.release()
    toolset.let.release()
    ahead.want(["d"])
    toolset.wait_for("a", "b", "d")


def test_what_is_wanted_no_more_ends_at_once(ahead: Ahead, toolset: Shop) -> None:
    ahead.want(["a", "b"])
    toolset.wait_for("a")
    ahead.want(["c"])
    toolset.wait_for("a", "c")
    assert toolset.made == []


def test_what_is_wanted_still_goes_on(ahead: Ahead, toolset: Shop) -> None:
    ahead.want(["a", "b"])
    toolset.wait_for("a")
    ahead.want(["c", "a"])
    toolset.let.release()
    toolset.wait_for("a", "c")
    assert toolset.made == ["a"]


def test_a_wrong_guess_makes_room_and_a_right_one_goes_on(ahead: Ahead, toolset: Shop) -> None:
    ahead.want(["a", "b"])
    toolset.wait_for("a")
    ahead.make_room("a")
    toolset.let.release()
    wait_until(lambda: toolset.made or None, Deadline.after(10), what="a")
    ahead.want(["b"])
    toolset.wait_for("a", "b")
    begun = time.monotonic()
    ahead.make_room("x")
    assert time.monotonic() - begun < 5
    assert toolset.made == ["a"]
    ahead.want(["c"])
    toolset.wait_for("a", "b", "c")


def test_the_same_wish_twice_is_one(ahead: Ahead, toolset: Shop) -> None:
    ahead.want(["a"])
    toolset.wait_for("a")
    ahead.want(["a"])
    toolset.let.release()
    ahead.want(["b"])
    wait_until(lambda: toolset.begun[-1] == "b" or None, Deadline.after(10), what="b")
    assert toolset.begun == ["a", "b"]


def test_one_sample_after_the_other_holds_it_once(
    ahead: Ahead, toolset: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    hold, release = Brake.hold, Brake.release
    monkeypatch.setattr(Brake, "hold", lambda brake: (done.append("hold"), hold(brake))[1])
    monkeypatch.setattr(Brake, "release", lambda brake: (done.append("go"), release(brake))[1])
    ahead.want(["a"])
    toolset.wait_for("a")
    for _ in range(3):
        with ahead.quiet():
            pass
    assert done == ["hold"]
    ahead.make_room("a")  # it is needed now: no waiting any more
    assert done == ["hold", "go"]


def test_nothing_is_begun_nor_goes_on_in_the_quiet(ahead: Ahead, toolset: Shop) -> None:
    with ahead.quiet():
        ahead.want(["a", "b"])
        time.sleep(0.1)
        assert toolset.begun == []
    toolset.wait_for("a")
    with ahead.quiet():
        toolset.let.release()
        time.sleep(0.1)
        assert toolset.made == []
    toolset.wait_for("a", "b")
