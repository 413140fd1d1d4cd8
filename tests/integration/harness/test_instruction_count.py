"""What is counted of real servers: the same each time; and memory that stays, in valgrind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from benches import MATRIX, benched, golden_of, image_of
from turns import turn_of

from dsbuilds.toolchains.toolchain_image import check_tools
from dsharness.containers.engine import Engine
from dsharness.machine.host import available_cpus, machine_now, share_cpus
from dsharness.matrix import find_settings, find_workload
from dsharness.measure.exact_count import take_count
from dsharness.measure.exact_counters import CALLGRIND, Callgrind, Strace, Valgrind
from dsharness.measure.heap_growth import MASSIF, take_heap_growth
from dsharness.measure.instance import serve
from dsharness.measure.sample import PROCEDURE, Bench, bench
from dsharness.model import Procedure, Settings

pytestmark = pytest.mark.whole

LOAD = MATRIX.workloads[0].model_copy(update={"users": 20, "distinct_users": 20})


@contextmanager
def counting(
    engine: Engine, row: str, scheme: str, tool: tuple[str, ...] = CALLGRIND
) -> Iterator[Bench]:
    settings = Settings(id=scheme.lower(), options={"password-scheme": scheme})
    golden = golden_of(engine, row, settings)
    valgrind = Valgrind(image=check_tools(engine, MATRIX, progress=print).reference, tool=tool)
    cpus = share_cpus(available_cpus(), can_pin=False)
    loader = image_of(engine, MATRIX.tools.loads["ldclt"])
    with serve(engine, golden, cpus, inside=valgrind) as instance:
        procedure = Procedure(version=PROCEDURE, way="callgrind")
        machine = machine_now(engine, cpus)
        with bench(engine, instance, loader, cpus, machine, procedure) as at:
            yield at


# Debian 11's C library is older than the one that valgrind's own programs need.
@pytest.mark.parametrize(
    ("row", "scheme", "stray"),
    [("debian-12", "PBKDF2-SHA512", 0.01), ("debian-11", "SSHA512", 0.03)],
)
def test_two_counts_are_the_same(engine: Engine, row: str, scheme: str, stray: float) -> None:
    with counting(engine, row, scheme) as at:
        turns = [turn_of(LOAD, turn, campaign_id="c") for turn in range(2)]
        samples = [take_count(at, turn, Callgrind()) for turn in turns]
    assert [sample.invalid for sample in samples] == [(), ()]
    first, second = (sample.value("instructions") or 0 for sample in samples)
    assert first == pytest.approx(second, rel=stray)
    rounds = 10_000 if scheme == "PBKDF2-SHA512" else 1
    assert first > 1000 * rounds


def test_a_released_server_keeps_little_of_a_bind(engine: Engine) -> None:
    with counting(engine, "debian-12", "SSHA512", MASSIF) as at:
        growth = take_heap_growth(at, LOAD)
    assert growth.operations > 100
    # Debian 12's 2.3.1 keeps 56 bytes in each run, allocated by a thread of connections.
    assert sum(each.bytes_per_operation for each in growth.stays) < 200, growth.stays


def test_system_calls_of_a_search_are_the_same_each_time(engine: Engine) -> None:
    """Without turbo mode, in which a thread keeps a connection that was busy for five seconds."""
    load = find_workload(MATRIX, "search-equality@100")
    golden = golden_of(
        engine, "debian-13", find_settings(MATRIX, "no-turbo-mode"), content=load.content
    )
    with benched(engine, golden) as at:
        samples = [take_count(at, turn_of(load, turn), Strace()) for turn in range(2)]
    assert [sample.invalid for sample in samples] == [(), ()]
    first, second = (sample.value("syscalls") or 0 for sample in samples)
    assert first == pytest.approx(second, rel=0.05)
    assert 5 < first < 50
    assert [sample.value("fsyncs") for sample in samples] == [0.0, 0.0]
    assert all(0 < (sample.value("futexes") or 0) < first for sample in samples)
