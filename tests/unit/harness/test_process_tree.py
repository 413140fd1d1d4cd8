from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsharness.machine.cgroups import ProcessTree, process_tree

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")


def stat(pid: int, parent: int, ticks: int, faults: int, pages: int) -> str:
    return (
        f"{pid} (a ) b) S {parent} 0 0 0 0 0 {faults} 0 0 0 {ticks} {ticks} 0 0 20 0 1 0 100 0 "
        f"{pages} 18446744073709551615 0 0\n"
    )


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """7 -> 8 -> 9, and 10 next to it. The name may hold anything, a bracket and a space too."""
    for pid, parent, amount in ((7, 1, 1), (8, 7, 10), (9, 8, 100), (10, 1, 5)):
        (tmp_path / str(pid)).mkdir()
        text = stat(pid, parent, amount, 2 * amount, 3 * amount)
        (tmp_path / str(pid) / "stat").write_text(text)
    return tmp_path


@pytest.mark.parametrize(("pids", "whole"), [((7, 8, 9), 111), ((9,), 100)])
def test_a_tree_of_processes_is_added_up(proc: Path, pids: tuple[int, ...], whole: int) -> None:
    assert process_tree(pids[0], proc) == ProcessTree(
        cpu_us=2 * whole * TICK_US,
        faults=2 * whole,
        resident_bytes=3 * whole * PAGE,
        pids=pids,
    )


def test_a_process_that_ended_has_no_tree(proc: Path) -> None:
    with pytest.raises(ProcessLookupError):
        process_tree(11, proc)


def test_memory_that_is_taken_is_seen() -> None:
    before = process_tree(os.getpid())
    taken = bytearray(os.urandom(1)) * 2**25
    after = process_tree(os.getpid())
    assert len(taken) == 2**25
    assert after.resident_bytes - before.resident_bytes > 2**24
    assert after.faults > before.faults
