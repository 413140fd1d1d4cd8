"""What perf prints becomes stacks from the root to the leaf, and none is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.errors import ToolMissingError
from dsharness.measure.profiler import check_profiler, folded, stacks_of, thread_stacks
from dsharness.measure.thread_waits import places
from dsharness.model import CpuProfile, WaitingPlace

SAID = """ns-slapd
\tffffffff821ed511 do_syscall_64 ([kernel.kallsyms])
\tffffffff81000130 [unknown] ([kernel.kallsyms])
\t           d4ad7 futex_wait (/usr/lib/x86_64-linux-gnu/libc.so.6)

ns-slapd 4711
\t           153e0 core::ops::function::FnOnce::call_once<(a; b)> (/usr/lib/libplugin.so (deleted))
\t           153e1 [unknown] (/usr/lib/libnspr4.so)
\t           153e9 [unknown] (/usr/lib/libnspr4.so)
\t           253e0 [unknown] (/usr/lib/libslapd.so.0)
"""


def test_stacks_begin_at_the_root_and_what_has_no_name_is_its_library() -> None:
    assert list(stacks_of(SAID.splitlines())) == [
        ("futex_wait", "[kernel]", "do_syscall_64"),
        ("[libslapd.so.0]", "[libnspr4.so]", "core::ops::function::FnOnce::call_once<(a, b)>"),
    ]


def test_each_stack_has_its_thread_and_a_thread_without_one_is_none() -> None:
    told = "listener\n\nworker-3\n" + SAID
    assert [thread for thread, _ in thread_stacks(told.splitlines())] == [
        "ns-slapd",
        "ns-slapd 4711",
    ]


def test_threads_that_are_alike_wait_together_at_a_place() -> None:
    wait = "\t  1 pthread_cond_wait (/lib/libc.so.6)\n\t  2 next_request (/lib/libslapd.so.0)\n\n"
    lines = (
        f"worker-1\n{wait}worker-12\n{wait}log_maint\n\t  3 poll (/lib/libc.so.6)\n".splitlines()
    )
    assert places(lines, 4) == (
        WaitingPlace(
            thread="worker", place=("pthread_cond_wait", "next_request"), per_operation=0.5
        ),
        WaitingPlace(thread="log_maint", place=("poll",), per_operation=0.25),
    )


@pytest.mark.parametrize("said", ["", "\n\n", "ns-slapd\n\n", "some warning of perf"])
def test_nothing_seen_is_no_stack(said: str) -> None:
    assert not list(stacks_of(said.splitlines()))


def test_what_is_rare_is_counted_for_its_caller() -> None:
    seen = [("main", "often")] * 98 + [("main", "rare", "a")] + [("main", "rare", "b")]
    assert folded(seen, least_share=0.02) == {"main;often": 98, "main;rare": 2}
    assert folded(seen, least_share=0.03) == {"main;often": 98, "main": 2}


FRAME_NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(tuple)


@given(stacks=st.lists(FRAME_NAMES, min_size=1, max_size=60), share=st.floats(0, 1))
def test_folding_loses_no_stack_and_no_root(stacks: list[tuple[str, ...]], share: float) -> None:
    kept = folded(stacks, share)
    assert sum(kept.values()) == len(stacks)
    roots = Counter[str]()
    for stack, count in kept.items():
        roots[stack[0]] += count
    assert roots == Counter(frames[0] for frames in stacks)


def test_cpu_time_is_shared_out_by_how_often_a_stack_was_seen() -> None:
    profile = CpuProfile(
        candidate_id="a", workload_id="w", event="cpu-clock", operations=10,
        cpu_us_per_op=200.0, stacks={"main;hash": 3, "main": 1},
    )  # fmt: skip
    assert profile.us_per_op() == {("main", "hash"): 150.0, ("main",): 50.0}


def test_without_perf_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissingError, match="perf is not installed") as caught:
        check_profiler()
    assert "linux-perf" in (caught.value.hint or "")
