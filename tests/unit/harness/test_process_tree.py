from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from dsharness.machine.cgroups import process_tree

MINFLT, RSS = 10, 24  # as proc(5) numbers them
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
        for thread in (pid, pid + 100):
            status = tmp_path / str(pid) / "task" / str(thread) / "status"
            status.parent.mkdir(parents=True)
            name = b"Name:\t\xff\x0bswitches: 9\n"
            status.write_bytes(name + b"switches:\t%d\nVmRSS:\t8 kB\n" % amount)
    return tmp_path


@pytest.mark.parametrize(("pids", "whole"), [((7, 8, 9), 111), ((9,), 100)])
def test_a_tree_of_processes_is_added_up(proc: Path, pids: tuple[int, ...], whole: int) -> None:
    tree = process_tree(pids[0], proc)
    assert tree.pids == pids
    assert tree.cpu_us == 2 * whole * TICK_US
    assert (tree.stat(MINFLT), tree.stat(RSS)) == (2 * whole, 3 * whole)
    assert tree.line("switches", "task/*/status") == 2 * whole
    assert tree.line("VmRSS", "task/*/status") == 2 * 8 * len(pids)


def test_those_of_a_name_are_added_up_alone(proc: Path) -> None:
    for pid, name in ((7, "sh"), (8, "java"), (9, "ns-slapd"), (10, "java")):
        (proc / str(pid) / "comm").write_text(f"{name}\n")
    tree = process_tree(7, proc).named("java")
    assert tree.pids == (8,)
    assert tree.cpu_us == 2 * 10 * TICK_US
    assert process_tree(7, proc).named("python").cpu_us == 0


def test_what_ended_meanwhile_counts_nothing_and_a_line_that_is_nowhere_is_unknown(
    proc: Path,
) -> None:
    tree = process_tree(7, proc)
    (proc / "9" / "task" / "109" / "status").unlink()
    assert tree.line("switches", "task/*/status") == 2 * 111 - 100
    for name, files in (("switch", "task/*/status"), ("switches", "task/*/none")):
        with pytest.raises(FileNotFoundError, match=f"no line {name}"):
            tree.line(name, files)


def test_a_process_that_ended_has_no_tree(proc: Path) -> None:
    with pytest.raises(ProcessLookupError):
        process_tree(11, proc)


def test_memory_that_is_taken_is_seen() -> None:
    before = process_tree(os.getpid())
    with mmap.mmap(-1, 2**25) as taken:  # pages that nothing had before
        taken.write(os.urandom(1) * 2**25)
        after = process_tree(os.getpid())
    assert (after.stat(RSS) - before.stat(RSS)) * os.sysconf("SC_PAGE_SIZE") > 2**24
    assert after.stat(MINFLT) > before.stat(MINFLT)
