"""A single client's times: a sleep in one of ten requests is seen, noise is not."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsproducts.dirsrv.validation.latency_step import (
    BLOCKS,
    LEAST_PAIRS,
    REQUESTS,
    cheap_user,
    latency_checks,
    pair_of,
    summary,
    voluntary_switches,
)
from dsproducts.dirsrv.validation.population import SchemeUser
from dsvalidate.check import Check, Status

PAIRS = 16


@dataclass
class Server:
    """Answers after a random time; one bind of ``each`` after ``sleep_us`` more."""

    seed: int
    sleep_us: float = 0.0
    each: int = 10
    waits: int = 3
    stalls: float = 0.01
    asked: dict[str, int] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)
    _switches: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def timed(self, kind: str, count: int) -> Sequence[float]:
        self.turns.append(kind)
        return [self._one(kind) for _ in range(count)]

    def _one(self, kind: str) -> float:
        self.asked[kind] = self.asked.get(kind, 0) + 1
        self._switches += self.waits
        stall = 50_000 if self._random.random() < self.stalls else 0
        sleep = self.sleep_us if kind == "bind" and self.asked[kind] % self.each == 0 else 0
        return 200 * self._random.lognormvariate(0, 0.3) + stall + sleep

    def switches(self) -> int:
        return self._switches


def checks_of(patched: Server, stock: Server, pairs: int = PAIRS) -> dict[str, Check]:
    found = latency_checks([pair_of(patched, stock) for _ in range(pairs)])
    return {check.name: check for check in found}


def test_a_sleep_of_20_ms_in_one_of_ten_binds_fails_and_nothing_else_does() -> None:
    found = checks_of(Server(seed=1, sleep_us=20_000), Server(seed=2))
    assert found["latency-bind"].status is Status.FAILED
    assert "p50" in found["latency-bind"].found
    assert found["latency-bind"].advice
    others = {name: check.status for name, check in found.items() if name != "latency-bind"}
    assert {*others} == {"latency-search", "latency-modify", "context-switches"}
    assert Status.FAILED not in others.values()


@pytest.mark.parametrize(("each", "stalls"), [(450, 0.0), (450, 0.01), (1000, 0.0)])
def test_a_second_in_one_of_a_thousand_binds_fails(each: int, stalls: float) -> None:
    """Neither the median nor one in a hundred shows it."""
    patched = Server(seed=11, sleep_us=1_000_000, each=each, stalls=stalls)
    found = checks_of(patched, Server(seed=12, stalls=stalls), LEAST_PAIRS)
    check = found.pop("latency-bind")
    assert check.status is Status.FAILED
    assert "500 ms more in" in check.found
    assert check.figures["longest, patched"].startswith("1,00")
    assert Status.FAILED not in {other.status for other in found.values()}


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(10))
def test_a_machine_that_stands_still_now_and_then_accuses_nobody(seed: int) -> None:
    """Moments of either side, each of which delays several requests."""

    @dataclass
    class Stalling(Server):
        def timed(self, kind: str, count: int) -> Sequence[float]:
            took = super().timed(kind, count)
            late = 600_000 if self._random.random() < 0.05 else 0
            return [one + late * (at < 20) for at, one in enumerate(took)]

    found = checks_of(Stalling(seed=seed, stalls=0.0), Stalling(seed=seed + 50, stalls=0.0))
    assert Status.FAILED not in {check.status for check in found.values()}


def test_a_lock_held_longer_is_seen_on_a_machine_that_stalls() -> None:
    """One request of twelve stalls by itself; four milliseconds of one in ten are seen still."""
    found = checks_of(Server(seed=3, sleep_us=4_000, stalls=0.08), Server(seed=4, stalls=0.08), 30)
    assert found["latency-bind"].status is Status.FAILED
    assert found["latency-search"].status is Status.PASSED


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(5))
def test_two_servers_that_are_the_same_differ_clearly_in_nothing(seed: int) -> None:
    found = checks_of(Server(seed=seed), Server(seed=seed + 100), pairs=24)
    assert all(check.status is not Status.FAILED for check in found.values())
    assert {check.status for check in found.values()} == {Status.PASSED}


def test_threads_that_wait_more_often_fail() -> None:
    found = checks_of(Server(seed=1, waits=4), Server(seed=2, waits=3))
    check = found["context-switches"]
    assert check.status is Status.FAILED
    assert "33.3 to 33.3 % more" in check.found
    assert check.figures == {"context switches, patched": "4.00", "context switches, stock": "3.00"}


def test_too_few_pairs_leave_it_open() -> None:
    found = checks_of(Server(seed=1, sleep_us=20_000), Server(seed=2), pairs=4)
    assert {check.status for check in found.values()} == {Status.INCONCLUSIVE}


def test_the_servers_take_turns_block_by_block() -> None:
    log: list[int] = []

    @dataclass
    class Logged(Server):
        def timed(self, kind: str, count: int) -> Sequence[float]:
            log.append(self.seed)
            return super().timed(kind, count)

    pair_of(Logged(seed=1), Logged(seed=2))
    firsts = log[:: 2 * len(REQUESTS)]
    assert firsts == [2, 1] * (BLOCKS // 2)
    assert log.count(1) == log.count(2)


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=400))
def test_percentiles_are_in_order_and_inside(took: list[float]) -> None:
    found = summary(took)
    inside = (min(took), found["p50"], found["p99"], max(took))
    assert all(one <= two * (1 + 1e-9) for one, two in itertools.pairwise(inside))


def test_the_switches_of_all_threads_are_added() -> None:
    status = "Name:\tns-slapd\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t9\n"
    assert voluntary_switches(status.format(3) + status.format(4)) == 7


def test_a_cheap_scheme_is_chosen_where_there_is_one() -> None:
    users = [
        SchemeUser(dn=f"uid={name}", password="p", scheme=name, stored="s")
        for name in ("PBKDF2-SHA512", "SSHA", "SSHA512")
    ]
    chosen = cheap_user(users)
    assert chosen is not None
    assert chosen.scheme == "SSHA512"
    assert cheap_user(users[:1]) is None
