"""Two candidates at the same time, each on CPUs of its own, which they swap."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from benches import benched, golden_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.machine.host import available_cpus
from dsharness.measure.sample import Bench
from dsharness.measure.ways import Seats, duet_seats, sit, take_duet
from dsharness.model import LdcltWorkload
from dsharness.process.deadline import Deadline, wait_until

pytestmark = pytest.mark.whole

LOAD = LdcltWorkload(id="duet", title="at random", users=200, distinct_users=200, duration_s=2)
ROWS = ("debian-11", "debian-12")


@pytest.fixture(scope="module")
def seats(engine: Engine) -> Seats:
    found = duet_seats(available_cpus(), can_move=engine.moves_cpus)
    if found is None:
        pytest.skip("a duet needs two CPUs, and an engine that can move containers")
    return found


@contextmanager
def benched_pair(engine: Engine) -> Iterator[tuple[Bench, Bench]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(benched(engine, golden_of(engine, r))) for r in ROWS)
        yield first, second


@pytest.fixture(scope="module")
def pair(engine: Engine) -> Iterator[tuple[Bench, Bench]]:
    with benched_pair(engine) as both:
        yield both


def cpus_of(at: Bench) -> list[str]:
    """Of the first process of server and load, as the kernel has them."""
    pids = [at.instance.container.state().pid, at.load.state().pid]
    texts = [Path(f"/proc/{pid}/status").read_text(encoding="utf-8") for pid in pids]
    return [text.partition("Cpus_allowed_list:")[2].split()[0] for text in texts]


def test_both_make_all_their_operations_and_are_told_as_one_pair(pair, seats):
    taken = take_duet(pair, seats, turn_of(LOAD))
    assert [sample.candidate_id for sample in taken] == list(ROWS)
    for sample in taken:
        assert sample.valid, sample.invalid
        assert sample.duet
        assert sample.turn == 0
        assert sample.operations % (2 * LOAD.threads) == 0, "two halves of whole rounds"
    # PBKDF2_SHA256 of NSS costs 34 to 40 ms here, 10,000 rounds of OpenSSL 12 to 19.
    first, second = (sample.value("cost") for sample in taken)
    assert first is not None
    assert second is not None
    assert first / second > 1.3


def test_they_swap_their_cpus(pair, seats):
    for order in (seats, seats[::-1]):
        for at, seat in zip(pair, order, strict=True):
            sit(at, seat)
            wanted = ",".join(map(str, seat.server))
            assert cpus_of(at) == [wanted, wanted] or len(seat.server) > 1


def test_what_happens_to_one_does_not_touch_the_other(pair, seats):
    """Paused for a while: its operations are all made, and no candidate is blamed."""
    first, _ = pair
    box = first.instance.container
    begin = first.instance.own.meter.used_us()

    def pause() -> None:
        while first.instance.own.meter.used_us() < begin + 300_000:
            time.sleep(0.02)
        box.engine.podman("pause", box.name)
        time.sleep(1.5)
        box.engine.podman("unpause", box.name)

    thread = threading.Thread(target=pause)
    thread.start()
    taken = take_duet(pair, seats, turn_of(LOAD, 1))
    thread.join()
    assert [sample.invalid for sample in taken] == [(), ()]
    assert taken[0].duration_s > 1.4


def server_pid(at: Bench) -> int:
    """The host's id of the server's program, not of what started it."""
    names = {pid: Path(f"/proc/{pid}/comm").read_text() for pid in at.instance.processes().pids}
    return next(pid for pid, name in names.items() if name.strip() == "ns-slapd")


def test_a_server_that_ends_before_its_turn_spoils_its_own_sample_alone(engine, seats):
    """It crashed while the other one warmed up: an answer of the lab, not an error of podman's."""
    with benched_pair(engine) as (first, second):
        os.kill(server_pid(first), signal.SIGSEGV)
        wait_until(lambda: not first.instance.alive, Deadline.after(20), what="its end")
        dead, alive = take_duet((first, second), seats, turn_of(LOAD))
        assert "the server died during the load" in dead.invalid
        assert not dead.disturbed, "nothing from outside ended it"
        assert Path(dead.log) == first.instance.container.log
        assert alive.valid, alive.invalid
