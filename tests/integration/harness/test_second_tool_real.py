"""UnboundID's tools on a real server: the operations of ldclt, counted by both sides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from benches import MATRIX, golden_of

from dsbuilds.built_row import second_tool_image
from dsharness.containers.engine import Engine
from dsharness.errors import WorkloadError
from dsharness.machine.host import available_cpus, machine_now, share_cpus
from dsharness.matrix import find_workload
from dsharness.measure import second_tool
from dsharness.measure.instance import serve
from dsharness.measure.sample import PROCEDURE, Bench, bench
from dsharness.measure.second_tool import take_tool_runs
from dsharness.model import DirectoryOperation, LdcltWorkload, Procedure, Settings

pytestmark = pytest.mark.whole
LOAD = find_workload(MATRIX, "bind-one").model_copy(update={"users": 20, "distinct_users": 20})
SLOW = Settings(id="pbkdf2", options={"password-scheme": "PBKDF2-SHA512"})


def load(operation: DirectoryOperation) -> LdcltWorkload:
    assert isinstance(LOAD, LdcltWorkload)
    return LOAD.model_copy(update={"operation": operation, "threads": 2})


@contextmanager
def tools_bench(engine: Engine) -> Iterator[Bench]:
    golden = golden_of(engine, "debian-12", SLOW)
    cpus = share_cpus(available_cpus(), can_pin=False)
    loader = second_tool_image(engine, MATRIX, progress=print)
    assert loader is not None
    procedure = Procedure(version=PROCEDURE)
    with (
        serve(engine, golden, cpus) as instance,
        bench(engine, instance, loader, cpus, machine_now(engine, cpus), procedure) as at,
    ):
        yield at


def test_both_tools_make_the_same_operations(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow hash is nearly all of a bind; a search and a write cost each tool its own way."""
    monkeypatch.setattr(second_tool, "RUNS", 2)
    costs = {}
    with tools_bench(engine) as at:
        for operation in DirectoryOperation:
            runs = take_tool_runs(at, load(operation))
            assert runs is not None
            assert len(runs.own) == len(runs.other) == 2
            costs[operation] = [sum(each) / 2 for each in (runs.own, runs.other)]
    own, other = costs[DirectoryOperation.BIND]
    assert other == pytest.approx(own, rel=0.3)
    for operation in (DirectoryOperation.SEARCH, DirectoryOperation.MODIFY):
        assert all(0 < cost < own / 3 for cost in costs[operation])


def test_errors_of_the_second_tool_are_no_figures(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its binds are all refused: nothing of such a run may be used."""
    words = second_tool.argv
    monkeypatch.setattr(
        second_tool, "argv",
        lambda *args: ["wrong" if "dsbisect-user" in word else word for word in words(*args)],
    )  # fmt: skip
    with tools_bench(engine) as at, pytest.raises(WorkloadError, match=r"authrate met [1-9]"):
        take_tool_runs(at, load(DirectoryOperation.BIND))
