"""Which counts are of the operations alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.measure.exact_count import (
    CountedRun,
    agreed,
    difference,
    in_the_middle,
    operations_of,
)
from dsharness.measure.exact_counters import Callgrind, own_counts
from dsharness.measure.metrics import INSTRUCTIONS

COST = 140_000.0
CLOSE = Callgrind().close(INSTRUCTIONS)


def test_two_that_agree_are_the_answer() -> None:
    assert agreed([COST, COST * 1.005], CLOSE) == pytest.approx(COST * 1.0025)


@pytest.mark.parametrize("each", [[], [COST], [COST, COST * 2.8], [-COST, -COST]])
def test_otherwise_there_is_none_yet(each: list[float]) -> None:
    assert agreed(each, CLOSE) is None


def test_none_at_all_is_an_answer_where_nothing_is_a_good_value() -> None:
    assert agreed([0.0, 0.0], CLOSE) is None
    assert agreed([0.0, 0.0], CLOSE, floor=0.01) == 0.0
    assert agreed([1.0, 1.002], CLOSE, floor=0.01) == pytest.approx(1.001)
    assert agreed([0.0, 1.0], CLOSE, floor=0.01) is None


def test_counts_of_a_busy_machine_of_which_no_two_agree_are_no_failure() -> None:
    """As counted while a test suite used both CPUs: calls of a search by Debian 13's server."""
    seen = [12.22, 16.15, 16.71, 15.18, 11.68, 12.62]
    assert agreed(seen, close=0.02) is None
    assert in_the_middle(seen) == pytest.approx(13.9)
    assert in_the_middle([-3.0, -1.0, 2.0]) == 0.0


@given(
    others=st.lists(st.floats(min_value=1.1, max_value=50.0), max_size=4, unique_by=round),
    data=st.data(),
)
def test_the_server_s_own_work_never_counts(others: list[float], data: st.DataObject) -> None:
    each = data.draw(st.permutations([COST, COST * 1.001, *(COST * k for k in others)]))
    apart = all(abs(a - b) > 0.01 * a for a in others for b in others if a != b)
    found = agreed(each, CLOSE)
    assert found is not None
    assert not apart or found == pytest.approx(COST, rel=0.001)


@pytest.mark.parametrize(
    ("operation_s", "instructions", "count"),
    [
        (1e-3, 4e5, 400),
        (0.01, 1e6, 400),
        (0.08, 3e7, 50),
        (4.0, 3e7, 3),
        (5.0, 4e5, 250),
        (60.0, 2e9, 2),
    ],
)
def test_a_run_is_as_long_as_time_allows_but_never_too_short(
    operation_s: float, instructions: float, count: int
) -> None:
    assert operations_of(operation_s, instructions, Callgrind()) == count


def run(seconds: float, **threads: int) -> CountedRun:
    numbers = {int(name.removeprefix("t")): count for name, count in threads.items()}
    return CountedRun(threads=numbers, seconds=seconds)


IDLE = run(6.0, t1=3_600_000, t2=9_000)


def test_only_threads_that_work_for_operations_count() -> None:
    short = run(2.0, t1=1_400_000, t2=1_500_000, t3=7_000_000)
    long = run(4.0, t1=2_300_000, t2=3_000_000, t3=9_000_000, t4=5_000_000)
    assert difference(short, long, IDLE, Callgrind.busier) == 1_500_000 + 2_000_000 + 5_000_000


@given(slower=st.floats(min_value=1.0, max_value=25.0))
def test_a_busy_machine_changes_no_count(slower: float) -> None:
    """The server's own work grows with the time, that of the operations does not."""
    long = run(4.0 * slower, t1=round(2_400_000 * slower), t2=3_000_000, t3=14_000_000)
    short = run(2.0, t1=1_200_000, t2=1_500_000, t3=7_000_000)
    assert difference(short, long, IDLE, Callgrind.busier) == 8_500_000


DUMPS = """\
# callgrind format
version: 1
positions: line
events: Ir
ob=(1) /usr/lib/libcrypto.so.3
fl=(1) ???
fn=(1) SHA512_Update
0 70
+3 30
cob=(2) /usr/lib/libc.so.6
cfn=(2) memcpy
calls=4 0
0 4000
* 5
fn=(3) 0x00000000000a1b40
0 11
ob=(2)
fn=(2)
0 9
fn=(4) walk'2
0 2
totals: 4127
# callgrind format
version: 1
ob=(1) /usr/sbin/ns-slapd
fn=(1) main
0 1
cfn=(2) walk
calls=1 0
0 500
"""


def test_what_a_call_costs_is_the_callees_and_each_dump_has_numbers_of_its_own() -> None:
    assert own_counts(DUMPS.splitlines()) == {
        "SHA512_Update": 105,
        "[libcrypto.so.3]": 11,
        "memcpy": 9,
        "walk": 2,
        "main": 1,
    }


@given(lines=st.lists(st.text(max_size=30) | st.sampled_from(DUMPS.splitlines())))
def test_no_line_is_counted_twice(lines: list[str]) -> None:
    """Whatever a dump holds, its counts are no more than all that it has."""
    known = [line for line in lines if line in DUMPS.splitlines()]
    most = sum(int(line.split()[-1]) for line in known if line.startswith(("0 ", "+3 ", "* ")))
    assert sum(own_counts(known).values()) <= most
    assert all(count >= 0 for count in own_counts(lines).values())
