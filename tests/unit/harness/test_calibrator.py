"""The calibrator does real work on real CPUs; a test can only hold it to what must be true."""

from __future__ import annotations

import os
import statistics
import threading
import time

import pytest

from dsharness.machine.calibrator import Calibrator

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
