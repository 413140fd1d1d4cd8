"""Which way a laboratory measures in, and what each way does with a turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from turns import turn_of

from dsharness.loads import LoadReport
from dsharness.machine.host import CpuShares
from dsharness.measure import ways
from dsharness.measure.gate import RunEvidence
from dsharness.measure.ways import (
    CountedCalls,
    CountedInstructions,
    Duet,
    Importing,
    InTurn,
    Way,
    way_for,
)
from dsharness.model import LdcltWorkload

LOAD = LdcltWorkload(id="one", title="one")
PLACE = CpuShares(server=(0,), load=(0,), pinned=True)


@pytest.mark.parametrize(
    ("cpus", "metric", "duet", "can_move", "name"),
    [
        ((0, 1), "cost", True, True, "duet"),
        ((0,), "cost", True, True, "in turn"),
        ((0, 1), "cost", True, False, "in turn"),
        ((0, 1), "cost", False, True, "in turn"),
        ((0, 1), "instructions", True, True, "callgrind"),
        ((0, 1), "syscalls", True, True, "strace"),
        ((0, 1), "fsyncs", False, True, "strace"),
    ],
)
def test_the_machine_and_the_metric_decide(
    monkeypatch: pytest.MonkeyPatch, cpus: tuple[int, ...], metric: str, name: str,
    *, duet: bool, can_move: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(ways, "host_counts", lambda: False)
    way = way_for(cpus, metric, duet=duet, can_pin=True, can_move=can_move)
    assert way.name == name
    assert type(way) is ways.WAYS[way.name]
    assert way.counts is (name in {"callgrind", "strace"})
    assert way.in_valgrind is (name == "callgrind")
    assert way.paired is (name == "duet")


def test_an_import_is_measured_alone_and_on_all_cpus() -> None:
    way = way_for((0, 1), "cost", duet=True, can_pin=True, can_move=True, imports=True)
    assert way == Importing(cpus=CpuShares(server=(0, 1), load=(0, 1), pinned=False))


@pytest.mark.parametrize(
    ("way", "candidates", "done"),
    [
        (InTurn(cpus=PLACE), "ab", ["begin", "sample a", "end", "begin", "sample b", "end"]),
        (Duet(seats=(PLACE, PLACE)), "ab", ["begin", "duet ab", "end"]),
        (Duet(seats=(PLACE, PLACE)), "a", ["sit a", "begin", "sample a", "end"]),
        (Importing(cpus=PLACE), "ab", ["begin", "import a", "end", "begin", "import b", "end"]),
        (CountedInstructions(cpus=PLACE), "a", ["begin", "count a", "end"]),
        (CountedCalls(cpus=PLACE), "ab", ["begin", "count a", "count b", "end"]),
    ],
)
def test_a_turn_gives_a_sample_of_each_in_their_order(
    monkeypatch: pytest.MonkeyPatch, way: Way, candidates: str, done: list[str]
) -> None:
    said: list[str] = []
    turn = turn_of(LOAD, 3, *candidates)

    def noted(word: str) -> Any:
        def take(at: Any, *rest: object) -> Any:
            names = "".join(each.name for each in at) if isinstance(at, tuple) else at.name
            said.append(f"{word} {names}")
            assert word == "sit" or turn in rest
            return tuple(names) if isinstance(at, tuple) else names

        return take

    for word in ("sample", "duet", "count", "import"):
        function = f"take_{word}"
        monkeypatch.setattr(ways, function, noted(word))
    monkeypatch.setattr(ways, "sit", noted("sit"))

    @contextmanager
    def measuring() -> Iterator[None]:
        said.append("begin")
        yield
        said.append("end")

    benches: list[Any] = [SimpleNamespace(name=name, cpus=PLACE) for name in candidates]
    taken = list(way.take(turn, benches, measuring))
    assert taken == list(candidates)
    assert said == done


def test_each_way_states_its_own_gate() -> None:
    """A count uses no time, so that an unknown CPU time says nothing against it."""
    whole = LoadReport(active_s=1.0, total=10, exit_status=0)
    evidence = RunEvidence(operations=10, threads=1, report=whole)
    counted = CountedCalls(cpus=PLACE)
    assert counted.objections(evidence) == ()
    for timed in (InTurn(cpus=PLACE), Duet(seats=(PLACE, PLACE))):
        assert "the server's CPU time could not be read" in timed.objections(evidence)
    lost = replace(evidence, report=replace(whole, total=9))
    failed = replace(evidence, report=replace(whole, errors={"49": 1}))
    assert counted.objections(lost) == ("9 of 10 operations succeeded",)
    assert counted.objections(failed) == ("10 of 10 operations succeeded",)
