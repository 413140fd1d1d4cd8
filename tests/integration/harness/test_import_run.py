"""Real imports are measured, and one that fails or loses users is no success."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from benches import MATRIX, golden_of
from turns import turn_of

from dsharness.containers.container import Container
from dsharness.containers.engine import Engine
from dsharness.machine.host import machine_now
from dsharness.matrix import find_workload
from dsharness.measure.import_run import FILE, Stoppable
from dsharness.measure.instance import serve
from dsharness.measure.sample import PROCEDURE, bench
from dsharness.measure.ways import way_for
from dsharness.model import Procedure, Sample
from dsharness.systems import SYSTEMS

pytestmark = pytest.mark.whole
LOAD = find_workload(MATRIX, "import@300")


def imported(engine: Engine, row: str) -> Sample:
    way = way_for((0,), "cost", duet=False, can_pin=False, can_move=False, imports=True)
    golden, machine = golden_of(engine, row, content=LOAD.content), machine_now(engine, way.cpus)
    procedure = Procedure(version=PROCEDURE, way=way.name)
    with (
        serve(engine, golden, way.cpus, inside=Stoppable()) as instance,
        bench(engine, instance, None, way.cpus, machine, procedure) as at,
    ):
        (sample,) = way.take(turn_of(LOAD, 1, row), [at], nullcontext)
    return sample


@pytest.mark.parametrize("row", ["debian-11", "debian-12", "debian-13", "debian-13-openldap"])
def test_a_directory_is_imported_and_counted(engine: Engine, row: str) -> None:
    sample = imported(engine, row)
    assert sample.valid, sample.invalid
    assert sample.operations == 300
    assert sample.metrics.keys() >= {"cost", "cpu", "rate"}
    assert sample.metrics.keys() <= {
        "cost",
        "cpu",
        "rate",
        "memory-at-rest",
        "start-cpu",
        "start-time",
    }
    cpu_us, rate = sample.metrics["cpu"].value, sample.metrics["rate"].value
    assert 10 < cpu_us < 1e5
    assert rate == pytest.approx(300 / sample.duration_s)


def test_an_import_that_lost_users_or_failed_is_the_candidates_own(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = type(SYSTEMS[MATRIX.row("debian-12").system])
    bring = driver.bring

    def too_few(self: object, box: Container, users: int, file: str) -> float:
        return bring(self, box, users - 1, file)

    with monkeypatch.context() as fewer:
        fewer.setattr(driver, "bring", too_few)
        assert imported(engine, "debian-12").invalid == ("the load made 299 of 300 operations",)
    monkeypatch.setattr(driver, "import_command", lambda self, *files: ("false", FILE))
    sample = imported(engine, "debian-12")
    assert sample.invalid[0] == "the load ended with status 1"
    assert not sample.disturbed
