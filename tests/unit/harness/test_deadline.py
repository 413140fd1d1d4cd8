"""A deadline is a point in time; waiting is for behaviour."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dsharness.errors import DeadlineError
from dsharness.process import deadline
from dsharness.process.deadline import MOST_PATIENCE, Deadline, patience, wait_until


@pytest.mark.parametrize(
    ("seconds", "passed"), [(-1.0, True), (0.0, True), (60.0, False)], ids=["past", "now", "later"]
)
def test_a_deadline_knows_whether_it_passed(seconds: float, passed: bool) -> None:
    deadline = Deadline.after(seconds)
    assert deadline.passed is passed
    assert 0.0 <= deadline.left_s <= max(seconds, 0.0)


def test_time_left_only_shrinks() -> None:
    deadline = Deadline.after(60)
    before = deadline.left_s
    time.sleep(0.01)
    assert deadline.left_s < before


def answers(*values: object) -> Iterator[object]:
    yield from values


def test_the_first_answer_is_returned() -> None:
    probe = answers(None, None, "ready", "too late")
    assert wait_until(lambda: next(probe), Deadline.after(5), what="it", pause_s=0.001) == "ready"


@pytest.mark.parametrize("answer", [0, "", False, ()])
def test_an_empty_answer_is_an_answer(answer: object) -> None:
    assert wait_until(lambda: answer, Deadline.after(5), what="it") == answer


def test_a_probe_is_asked_even_when_time_is_up() -> None:
    assert wait_until(lambda: "ready", Deadline.after(-1), what="it") == "ready"


def test_a_wait_that_times_out_ends_at_the_deadline_and_says_for_what() -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineError, match="waiting for the server's first bind") as caught:
        wait_until(lambda: None, Deadline.after(0.05), what="the server's first bind", pause_s=9)
    assert time.monotonic() - started < 2, "the pause must not outlast the deadline"
    assert caught.value.hint


def test_a_failing_probe_is_not_swallowed() -> None:
    def probe() -> None:
        raise RuntimeError("the server died")

    with pytest.raises(RuntimeError, match="died"):
        wait_until(probe, Deadline.after(5), what="it")


@pytest.mark.parametrize(("took_s", "times"), [(0.01, 1.0), (0.2, 5.0), (60.0, MOST_PATIENCE)])
def test_work_has_longer_where_it_goes_slower(
    monkeypatch: pytest.MonkeyPatch, took_s: float, times: float
) -> None:
    moments = iter([0.0, took_s])
    monkeypatch.setattr(deadline.time, "perf_counter", lambda: next(moments))
    patience.cache_clear()
    assert patience() == pytest.approx(times)
    limit = Deadline.of_work(100)
    patience.cache_clear()
    assert limit.left_s == pytest.approx(100 * times, abs=1)
