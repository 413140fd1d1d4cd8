"""What a level is made of: its rate, its length, its connections; and when it is given up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped import MATRIX
from worlds import sample_of

from dsbisect.capacity import CAPACITY_RUNS, Capacity, closed_loop, is_fed
from dsbisect.levels_study import at_rate, level_rates
from dsbisect.open_campaigns import TRIES, gave_up, valid_runs
from dsbisect.studies import Levels
from dsharness.errors import InconclusiveError
from dsharness.loads.load_driver import run_size
from dsharness.machine.host import session_id
from dsharness.matrix import find_workload
from dsharness.measure.metrics import LATENCY, RATE
from dsharness.model import LdaploadWorkload, Sample
from dssearch.question import History

LOAD = closed_loop(find_workload(MATRIX, "session"))


def run(turn: int, rate: float, **changes: object) -> Sample:
    metrics = {"rate": RATE.measured(rate), "latency": LATENCY.measured(4e6 / rate)}
    return sample_of("r", 1.0, turn, **{"metrics": metrics, "session": session_id(), **changes})


def test_a_closed_loop_is_the_same_load_without_its_schedule() -> None:
    scheduled = find_workload(MATRIX, "session")
    assert scheduled.rate == 4
    assert LOAD.model_copy(update={"id": "session", "scheduled": 4.0}) == scheduled
    assert (LOAD.id, LOAD.rate) == ("session-closed", None)


@given(st.floats(0.1, 100_000), st.integers(1, 500))
def test_a_level_has_enough_operations_or_is_long(rate: float, connections: int) -> None:
    level = at_rate(LOAD, float(f"{rate:.3g}"), connections)
    assert LdaploadWorkload.model_validate(level.model_dump()) == level  # its id is one, too
    assert (level.scheduled, level.threads) == (float(f"{rate:.3g}"), connections)
    size = run_size(level, None)
    assert size.total(connections) >= 299 or level.duration_s == 30
    assert LOAD.duration_s <= level.duration_s <= 30
    assert size.limit_s >= 2 * level.duration_s  # of a server that answers half as many
    assert (
        level.model_copy(
            update={
                each: getattr(LOAD, each) for each in ("id", "scheduled", "threads", "duration_s")
            }
        )
        == LOAD
    )


def test_levels_of_a_long_name_still_have_names_of_their_own() -> None:
    long = closed_loop(find_workload(MATRIX, "session").model_copy(update={"id": 64 * "a"}))
    levels = [at_rate(long, rate, 4) for rate in (100_000, 99_900)]
    for each in (long, *levels):
        assert LdaploadWorkload.model_validate(each.model_dump()) == each
    assert len({each.id for each in (long, *levels)}) == 3


def test_levels_are_shares_of_the_capacity_or_rates() -> None:
    shares = Levels(rows=("debian-12",), workload="session")
    assert level_rates(shares, 1234.0) == (308, 617, 926, 1110, 1230, 1360)
    rates = Levels(rows=("debian-12",), workload="session", rates=(1800, 600))
    assert level_rates(rates, 1234.0) == (600, 1800)
    near = Levels(rows=("debian-12",), workload="session", shares_pct=(100, 100.01))
    assert level_rates(near, 1234.0) == (1230,)


def test_a_capacity_is_that_of_the_first_valid_runs() -> None:
    runs = [run(0, 9, invalid=("x",)), *(run(turn, 1000 + turn) for turn in range(1, 9))]
    found = Capacity.of("r", runs)
    assert found.per_s == 1003
    assert Capacity.of("r", runs[: CAPACITY_RUNS + 1]) == found
    assert found.answers(2006)
    assert not found.answers(2007)
    assert found.connections(1003) == pytest.approx(16, abs=1)  # four in the closed loop
    assert found.connections(100_000) == found.connections(2006)  # no run is faster
    with pytest.raises(InconclusiveError, match=r"r: its capacity is not known.*: x \(/logs/x\)"):
        Capacity.of("r", [run(0, 9, invalid=("x",), log="/logs/x")])


def test_runs_that_waited_for_a_cpu_are_taken_again_and_are_no_capacity() -> None:
    hungry = [run(turn, 246, taken_pct=84.0, server_waited_s=9.0) for turn in range(TRIES)]
    assert Capacity.of("r", [*hungry, run(TRIES, 5450)]).per_s == 5450
    with pytest.raises(InconclusiveError, match=r"the server waited for a CPU.* took 84 %"):
        Capacity.of("r", hungry)
    history = History.of_samples(hungry[1:])
    assert valid_runs(("r",), 5)(history) == 2
    assert valid_runs(("r",), 5, counts=is_fed)(history) == 5
    assert valid_runs(("r",), 5, counts=is_fed)(History.of_samples(hungry)) == 0


def test_a_level_is_given_up_for_one_start_of_the_lab() -> None:
    bad = [run(turn, 1.0, invalid=("late",)) for turn in range(TRIES)]
    assert gave_up(bad, session_id())
    assert not gave_up(bad[1:], session_id())
    assert not gave_up([*bad, run(TRIES, 1.0)], session_id())
    before = [each.model_copy(update={"session": "another"}) for each in bad]
    assert not gave_up(before, session_id())
    assert gave_up(before)  # of several machines none is the one that asks
