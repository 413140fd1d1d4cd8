"""Shares of the CPUs, time stolen from them, and how fast they are.

The calibrator does real work on real CPUs; a test can only hold it to what must be true.
"""

from __future__ import annotations

import os
import statistics
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.containers.engine import Engine
from dsharness.machine.cgroups import TICK_S
from dsharness.machine.host import (
    Calibrator,
    CpuTicks,
    available_cpus,
    machine_now,
    parse_ticks,
    read_ticks,
    share_cpus,
)

CPUS = st.lists(st.integers(0, 511), min_size=2, max_size=64, unique=True).map(
    lambda numbers: tuple(sorted(numbers))
)
STAT = (
    "cpu  999 0 0 0 0 0 0 999 0 0\n"
    "cpu0 100 1 50 800 10 0 5 34 7 0\n"
    "cpu1 200 0 0 700 0 0 0 100 0 0\n"
    "cpu10 1 1 1 1 1 1 1 1 1 1\n"
    "intr 12345 0 0\n\n"
)


@given(cpus=CPUS)
def test_server_and_load_share_out_all_cpus_and_share_none(cpus: tuple[int, ...]) -> None:
    shares = share_cpus(cpus, can_pin=True)
    assert shares.pinned
    assert tuple(sorted(shares.server + shares.load)) == cpus
    assert len(shares.server) >= len(shares.load) >= 1


@given(cpus=CPUS)
def test_without_pinning_both_have_all(cpus: tuple[int, ...]) -> None:
    shares = share_cpus(cpus, can_pin=False)
    assert (shares.server, shares.load, shares.pinned) == (cpus, cpus, False)


def test_one_cpu_cannot_be_shared_out() -> None:
    shares = share_cpus((3,), can_pin=True)
    assert (shares.server, shares.load, shares.pinned) == ((3,), (3,), False)


@pytest.mark.parametrize(
    ("cpus", "total", "steal", "idle"),
    [
        ((0,), 1000, 34, 810),
        ((1,), 1000, 100, 700),
        ((0, 1), 2000, 134, 1510),
        ((10,), 8, 1, 2),  # not cpu1's; guest time is in user time already
        ((7,), 0, 0, 0),
    ],
)
def test_ticks(cpus: tuple[int, ...], total: int, steal: int, idle: int) -> None:
    assert parse_ticks(STAT, cpus) == CpuTicks(total=total, steal=steal, idle=idle)


def test_old_kernels_have_no_steal_column() -> None:
    assert parse_ticks("cpu0 1 2 3 4\n", (0,)) == CpuTicks(total=10, steal=0, idle=4)


@pytest.mark.parametrize(
    ("later", "percent"),
    [
        (CpuTicks(total=200, steal=6), 5.0),
        (CpuTicks(total=200, steal=1), 0.0),
        (CpuTicks(total=100, steal=1), 0.0),  # no time has passed
    ],
)
def test_steal(later: CpuTicks, percent: float) -> None:
    assert (later - CpuTicks(total=100, steal=1)).steal_pct == percent


@pytest.mark.parametrize(
    ("idle", "own_s", "percent"),
    [
        (100, 0.0, 0.0),
        (0, 1.0, 0.0),  # all of it is the lab's own
        (0, 0.25, 75.0),
        (40, 0.25, 35.0),
        (40, 0.62, 0.0),  # ticks are coarse
    ],
)
def test_what_neither_idles_nor_is_the_labs_was_taken(
    idle: int, own_s: float, percent: float
) -> None:
    passed = CpuTicks(total=100, steal=0, idle=idle)
    assert passed.taken_pct(own_s * 100 * TICK_S * 1e6) == pytest.approx(percent)
    assert CpuTicks(total=0, steal=0).taken_pct(0.0) == 0.0


def test_this_machine_can_be_read() -> None:
    cpus = available_cpus()
    assert set(cpus) == os.sched_getaffinity(0)
    assert read_ticks(cpus).total > 0


def test_a_machine_carries_what_samples_are_compared_by() -> None:
    engine = Engine(
        podman_version="5.2.0",
        rootless=True,
        cgroups="v2",
        runtime="crun",
        pins_cpus=True,
        limits_memory=True,
    )
    machine = machine_now(engine, share_cpus((0, 1, 2, 3), can_pin=True))
    assert machine.id
    found = machine.facts
    assert found["server_cpus"] == (0, 1, 2)
    assert found["load_cpus"] == (3,)
    assert found["pinned"] is True
    assert (found["podman"], found["cgroups"], found["rootless"]) == ("5.2.0", "v2", True)
    assert found["cpu_model"]
    assert found["kernel"] == os.uname().release


OURS = tuple(sorted(os.sched_getaffinity(0)))


def names() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("cpus", [(), OURS, OURS[:1]], ids=["any", "all", "one"])
def test_one_piece_of_work_takes_time(cpus: tuple[int, ...]) -> None:
    with Calibrator(cpus) as calibrator:
        time.sleep(0.2)
    assert calibrator.cpu_us is not None
    assert 50 < calibrator.cpu_us < 1_000_000


def test_it_works_on_every_cpu_it_is_given() -> None:
    with Calibrator(OURS) as calibrator:
        time.sleep(0.3)
    assert len(calibrator._times_us) >= len(OURS)
    assert calibrator.cpu_us == statistics.median(calibrator._times_us)


def test_before_the_first_piece_nothing_is_known() -> None:
    assert Calibrator(OURS).cpu_us is None


def test_it_ends_with_its_block_and_leaves_our_cpus_alone() -> None:
    with Calibrator(OURS[:1]):
        assert "calibrator" in names()
    assert "calibrator" not in names()
    assert tuple(sorted(os.sched_getaffinity(0))) == OURS


def test_it_ends_when_the_load_fails() -> None:
    with pytest.raises(RuntimeError, match="the load"), Calibrator(OURS):
        raise RuntimeError("the load failed")
    assert "calibrator" not in names()


def test_it_takes_little_of_a_cpu() -> None:
    begin, own = time.monotonic(), time.process_time()
    with Calibrator(OURS[:1]):
        time.sleep(1.0)
    assert (time.process_time() - own) / (time.monotonic() - begin) < 0.25
