"""What every driver must satisfy: a row's server with a workload that it answers.

    pytest tests/integration/harness/test_drivers.py --driver ROW:WORKLOAD

tries a new one, by the names that it has in matrix.yaml (a workload that asks for many entries);
without it, five that differ are tried.
docs/drivers.md says how a driver is written.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from benches import MATRIX, Bench, benched, golden_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.errors import UsageError
from dsharness.machine.cgroups import process_tree
from dsharness.matrix import find_row, find_workload
from dsharness.measure.golden_state import Golden
from dsharness.measure.sample import take_sample
from dsharness.model import Row, Settings, Workload
from dsharness.products import product, product_of
from dsharness.systems import answers
from dsharness.systems.system import CannotCount
from dslab.lab_conditions import LabConditions

USUAL = (
    "debian-13:bind-random",
    "debian-13-openldap:bind-random",
    "debian-12-bind:dns-udp",
    "debian-12-krb5:kerberos-preauth",
    "debian-13:search-groups",
    pytest.param("freeipa-debian-13:bind-random", marks=pytest.mark.whole),
    pytest.param("mesh-fastd-debian-12:mesh-tcp", marks=pytest.mark.whole),
    pytest.param("keycloak-debian-12:keycloak-login", marks=pytest.mark.whole),
)
ENTRIES = 60  # a state that is quickly filled

Driver = tuple[Row, Workload]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = metafunc.config.getoption("driver") or USUAL
    metafunc.parametrize("driver", named, indirect=True)


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Driver:
    row, _, workload = request.param.partition(":")
    found = find_workload(MATRIX, workload)
    short = {"duration_s": 0.5, "most_s": 1.0, "operations": 60}
    short["warmup_s"] = min(10, found.warmup_s)
    small = shrunk(found.model_dump(exclude={"scheduled"}), found.content.number)
    kept = {name: value for name, value in found if name == "scheduled"}
    return find_row(MATRIX, row), type(found).model_validate(small | kept | short)


def shrunk(part: Any, number: int) -> Any:
    """The same with fewer entries, wherever it says how many there are."""
    match part:
        case dict():
            return {name: shrunk(value, number) for name, value in part.items()}
        case tuple() | list():
            return tuple(shrunk(each, number) for each in part)
        case _:
            return ENTRIES if part == number else part


def state(engine: Engine, driver: Driver, entries: int = ENTRIES) -> Golden:
    content = driver[1].content.model_copy(update={"number": entries})
    return golden_of(engine, driver[0].id, content=content)


def test_its_row_says_which_product_runs_in_which_version(engine: Engine, driver: Driver) -> None:
    golden, row = state(engine, driver), driver[0]
    assert row.system in product(product_of(row)).systems
    assert product(product_of(row)).version(golden.image.packages)
    assert golden.facts, "it says nothing of itself, so nothing would show that it has changed"


def test_the_load_speaks_what_the_server_answers(driver: Driver) -> None:
    row, workload = driver
    assert answers(row.system, workload)


def test_a_state_is_named_by_what_it_is_made_from(engine: Engine, driver: Driver) -> None:
    first = state(engine, driver)
    assert state(engine, driver).key == first.key
    assert state(engine, driver, ENTRIES + 1).key != first.key


def test_an_option_that_it_does_not_know_is_refused(engine: Engine, driver: Driver) -> None:
    row, workload = driver
    settings = Settings(id="odd", options={"no-such-option": "1"})
    conditions = LabConditions.on(engine, matrix=MATRIX, settings=settings, workloads=(workload,))
    with pytest.raises(UsageError, match="no-such-option"):
        conditions.refuse_unfit(row.id, row.system)


def test_it_has_no_privilege_and_no_way_out(engine: Engine, driver: Driver) -> None:
    """Where its driver asks for one, what is measured has none; its interfaces end in itself."""
    with benched(engine, state(engine, driver), driver[1].tool) as at:
        box = at.instance.container
        devices = box.must("cat", "/proc/net/dev", what="look at the network").splitlines()[2:]
        others = {line.split(":")[0].strip() for line in devices} - {"lo"}
        flags = [f"/sys/class/net/{name}/tun_flags" for name in others]
        box.must("cat", "/dev/null", *flags, what="see that they are no cards")
        status = "CapEff:\t0000000000000000"
        if at.instance.system.serving(at.instance.own.shared).capabilities:
            tree = process_tree(box.state().pid)
            statuses = [Path(f"/proc/{pid}/status").read_text("utf-8") for pid in tree.pids]
            assert sum(status in text for text in statuses) >= len(others)
        else:
            assert status in box.must("cat", "/proc/self/status", what="look at the capabilities")
            assert not others


def test_what_it_counts_is_what_the_load_made(engine: Engine, driver: Driver) -> None:
    with benched(engine, state(engine, driver), driver[1].tool) as at:
        kinds = driver[1].operation.split("+")
        first = looked(at, kinds)
        own = sum(at.instance.system.look_operations.get(kind, 0) for kind in kinds)
        assert looked(at, kinds) - first == own
        before = looked(at, kinds)
        sample = take_sample(at, turn_of(driver[1]))
        assert sample.valid, sample.invalid  # the gate has compared both counts, or the answers
        assert sample.facts == at.instance.own.golden.facts
        counted = looked(at, kinds) - before
        assert sample.operations > 0
        assert sample.operations < counted or not counts(at), "the warm-up's come on top"
        for metric in ("cost", "rate", "cpu", "client-cpu"):
            assert (sample.value(metric) or 0) > 0, metric


def looked(at: Bench, kinds: list[str]) -> int:
    """How many operations of these kinds the server has counted."""
    operations = at.instance.system.look(at.instance.endpoint).operations
    return 0 if isinstance(operations, CannotCount) else sum(operations[kind] for kind in kinds)


def counts(at: Bench) -> bool:
    """Whether it counts at all: otherwise its load has looked at each answer."""
    look = at.instance.system.look(at.instance.endpoint)
    return not isinstance(look.operations, CannotCount)


def abort(processes: list[int]) -> None:
    """End a server, of however many processes it is."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # it has ended with another one
            os.kill(process, signal.SIGABRT)


def test_operations_that_fail_make_a_run_invalid(engine: Engine, driver: Driver) -> None:
    """The load asks for more than the server holds."""
    row, workload = driver
    with benched(engine, golden_of(engine, row.id, users=2), workload.tool) as at:
        sample = take_sample(at, turn_of(workload))
    assert sample.invalid
    assert not sample.disturbed, "nothing outside explains it"


def test_a_server_that_dies_is_told_and_never_slow(engine: Engine, driver: Driver) -> None:
    # long: the pace that the first run sees may be that of a busy machine
    workload = driver[1].model_copy(update={"duration_s": 12.0, "most_s": 12.0})
    with benched(engine, state(engine, driver), workload.tool) as at:
        take_sample(at, turn_of(driver[1]))  # its pace is known from here on
        server = process_tree(at.instance.container.state().pid).pids[1:]  # below its init
        end = threading.Timer(1.5, abort, (server,))
        end.start()
        sample = take_sample(at, turn_of(workload, 1))
        end.join()
    assert "the server died during the load" in sample.invalid
    assert not sample.disturbed
