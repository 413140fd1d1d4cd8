"""What samples must share for a search to go on from them, and where a lab's time went."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped import MATRIX
from turns import turn_of

from dsbisect.commits.commit_candidates import SourceSupply
from dsharness.containers.engine import Engine
from dsharness.errors import InstanceError
from dsharness.machine import host
from dsharness.machine.host import CpuShares, machine_id, place_id
from dsharness.measure.golden_state import Golden
from dsharness.measure.sample import Bench
from dsharness.measure.ways import Duet, InTurn
from dsharness.model import Image, LdcltWorkload, Settings, Starts, Turn
from dsharness.process.deadline import forget_request, keep_request
from dslab.lab_conditions import LabConditions
from dslab.laboratory import Laboratory
from dslab.spent_time import KINDS, SpentTime

ENGINE = Engine(
    podman_version="5.2.0", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
CONDITIONS = LabConditions(
    matrix=MATRIX, settings=Settings(id="default"), workloads=MATRIX.workloads,
    way=InTurn(cpus=CpuShares(server=(0,), load=(1,), pinned=True)),
)  # fmt: skip


def lab(
    conditions: LabConditions = CONDITIONS, loader: str = "l", runtime: str = "r"
) -> Laboratory:
    """A laboratory whose ends are ready."""
    supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=())
    supply._toolsets["debian-13"] = SimpleNamespace(  # type: ignore[assignment]
        runtime=Image(candidate_id="debian-13", reference="x", key=runtime)
    )
    made = Laboratory(ENGINE, conditions, supply, lambda *_: None)
    image = Image(candidate_id="debian-13", reference="y", key=loader)
    made._load_generator = lambda: image  # type: ignore[method-assign]
    made.prepare((), SimpleNamespace())  # type: ignore[arg-type]
    return made


SETTINGS = Settings(id="default", options={"password-scheme": "SSHA512"})
CHANGES: dict[str, Callable[[], Laboratory]] = {
    "settings": lambda: lab(replace(CONDITIONS, settings=SETTINGS)),
    "load generator": lambda: lab(loader="newer"),
    "runtime": lambda: lab(runtime="other libraries"),
    "cpus": lambda: lab(
        replace(CONDITIONS, way=InTurn(cpus=CpuShares(server=(0, 1), load=(2,), pinned=True)))
    ),
    "way": lambda: lab(
        replace(CONDITIONS, way=Duet(seats=(CONDITIONS.way.cpus, CONDITIONS.way.cpus)))
    ),
}


@pytest.mark.parametrize("what", list(CHANGES))
def test_each_of_these_makes_another_search(what: str) -> None:
    assert CHANGES[what]().setup != lab().setup
    assert CHANGES[what]().setup == CHANGES[what]().setup


def test_a_title_of_settings_changes_nothing() -> None:
    titled = Settings(id="default", title="as it is")
    assert lab(replace(CONDITIONS, settings=titled)).setup == lab().setup


def test_another_way_of_sampling_is_another_search(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lab().setup
    monkeypatch.setattr("dslab.laboratory.PROCEDURE", 1000)
    assert lab().setup != before


def test_another_machine_is_another_search(monkeypatch: pytest.MonkeyPatch) -> None:
    before, machine, place = lab().setup, machine_id(), place_id()
    texts: dict[str, Any] = {"/etc/machine-id": "another"}
    real = host.system_text
    monkeypatch.setattr(host, "system_text", lambda path: texts.get(str(path)) or real(path))
    assert machine_id() != machine
    assert place_id() != place
    assert lab().setup != before
    texts.clear()
    texts["/proc/sys/kernel/random/boot_id"] = "after a reboot"
    assert machine_id() == machine
    assert place_id() != place  # process ids mean others now
    assert lab().setup == before


def test_asked_to_stop_it_takes_no_sample() -> None:
    keep_request()
    try:
        with pytest.raises(KeyboardInterrupt):
            next(lab().take(turn_of(MATRIX.workloads[0], 0, "a")))
    finally:
        forget_request()


@pytest.mark.parametrize("wrong", [{"way": "duet"}, {"machine": "another"}])
def test_a_turn_of_another_way_or_machine_is_not_taken(wrong: dict[str, str]) -> None:
    """Its samples would say that they can be compared with those of its campaign."""
    turn = turn_of(MATRIX.workloads[0], 3, "a").model_copy(update=wrong)
    with pytest.raises(AssertionError, match="turn 3 of test was planned"):
        next(lab().take(turn))


def test_both_sides_of_a_turn_are_prepared_at_the_same_time() -> None:
    """And once: what could not be made says so when it is needed, and is not tried again."""
    made, tries = lab(), Counter[str]()
    together = threading.Barrier(2, timeout=10)

    def golden(candidate: str) -> Golden:
        tries[candidate] += 1
        together.wait()
        if candidate == "broken":
            raise InstanceError("it does not start")
        return SimpleNamespace(key=candidate)  # type: ignore[return-value]

    made._golden = golden  # type: ignore[method-assign]
    made.prepare_more(("sound", "broken"))
    made.prepare_more(("sound",))  # one alone is made when it is needed
    assert list(made.goldens) == ["sound"]
    with pytest.raises(InstanceError, match="it does not start"):
        made.ready("broken")
    assert tries == {"sound": 1, "broken": 1}


def test_servers_that_are_compared_have_served_as_much() -> None:
    """The reference of many turns would be older than each new candidate: a leak counts then."""
    made, started = lab(), Counter[str]()

    def start(candidate: str, _: object) -> tuple[Bench, ExitStack]:
        started[candidate] += 1
        return SimpleNamespace(usable=True), ExitStack()  # type: ignore[return-value]

    made._started = start  # type: ignore[method-assign]
    made._conditions = replace(made._conditions, way=Taken())  # type: ignore[arg-type]
    ages: list[tuple[int, ...]] = []
    for number, other in enumerate(("a", "a", "b", "b", "c", "a", "a")):
        names = ("reference", other)
        made.goldens |= dict.fromkeys(names, SimpleNamespace(key="k"))  # type: ignore[arg-type]
        made.prepare_more(names)
        for name in names:
            made.ready(name)
        ages.append(tuple(made._served[name] for name in names))
        list(made.take(turn_of(MATRIX.workloads[0], number, *names)))
    assert ages == [(0, 0), (1, 1), (0, 0), (1, 1), (0, 0), (1, 2), (2, 3)]
    assert started == {"reference": 3, "a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("operation", "of_start", "servers"),
    [("search", False, 1), ("modify", False, 3), ("search", True, 3)],
)
def test_a_server_that_has_told_all_that_it_can_is_not_measured_again(
    operation: str, of_start: bool, servers: int
) -> None:
    """It was written to, or the metric has one value for each start."""
    made, started, ended = lab(), Counter[str](), Counter[str]()

    def start(candidate: str, _: object) -> tuple[Bench, ExitStack]:
        started[candidate] += 1
        owned = ExitStack()
        owned.callback(ended.update, [candidate])
        return SimpleNamespace(usable=True), owned  # type: ignore[return-value]

    made._started = start  # type: ignore[method-assign]
    made._conditions = replace(
        made._conditions,
        way=Taken(),  # type: ignore[arg-type]
        of_start=of_start,
    )
    made.goldens |= dict.fromkeys("ab", SimpleNamespace(key="k"))  # type: ignore[arg-type]
    load = LdcltWorkload(id="load", title="a load", operation=operation)
    for number in range(3):
        list(made.take(turn_of(load, number, "a", "b")))
    assert started == {"a": servers, "b": servers}
    assert ended == ({"a": 3, "b": 3} if servers == 3 else {})


@pytest.mark.parametrize(
    ("starts", "start_s", "of_age", "served"),
    [
        ("kept", 1.5, False, [1, 1, 1, 1, 1, 1]),  # a measurement: one server's samples
        ("afforded", 1.5, False, [1, 2, 3, 4, 5, 6]),
        # dear: as many turns as it takes long; the first start says nothing of the next
        ("afforded", 7.0, False, [1, 2, 2, 2, 3, 3]),
        ("afforded", 1.5, True, [1, 1, 1, 1, 1, 1]),  # a leak shows in a server that goes on
        ("fresh", 700.0, False, [1, 2, 3, 4, 5, 6]),
        ("fresh", 1.5, True, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_a_search_asks_new_servers_where_a_start_costs_no_more_than_the_runs(
    starts: Starts, start_s: float, of_age: bool, served: list[int]
) -> None:
    """A server that is slow from its start on, by chance, would be taken for a slow candidate."""
    made, hands, seen = lab(), Hands(), list[tuple[int, int]]()
    made.spent = SpentTime(hands)

    def start(candidate: str, _: object) -> tuple[Bench, ExitStack]:
        made._starts[candidate] += 1
        hands.at += start_s
        bench = SimpleNamespace(usable=True, start=made._starts[candidate])
        return bench, ExitStack()  # type: ignore[return-value]

    made._started = start  # type: ignore[method-assign]
    way = Taken(takes=lambda: setattr(hands, "at", hands.at + 6.0))
    made._conditions = replace(made._conditions, way=way, of_age=of_age)  # type: ignore[arg-type]
    made.goldens |= dict.fromkeys("ab", SimpleNamespace(key="k"))  # type: ignore[arg-type]
    for number in range(6):
        turn = turn_of(LOAD, number, "a", "b").model_copy(update={"starts": starts})
        made.prepare_more(turn.candidates, turn.starts)
        for name in turn.candidates:
            made.ready(name)
        first, second = (made._bench(name).start for name in "ab")
        seen.append((first, second))
        list(made.take(turn))
    assert seen == [(each, each) for each in served]


LOAD = LdcltWorkload(id="load", title="a load", operation="search")


@dataclass
class Taken:
    """A way that takes nothing, in the time that a test says."""

    name = "in turn"
    counts = True  # so that it asks for no lock of this machine
    takes: Callable[[], None] = lambda: None

    def take(
        self, turn: Turn, benches: object, measuring: Callable[[], AbstractContextManager[None]]
    ) -> list[Any]:
        del benches
        with measuring():
            self.takes()
        return [SimpleNamespace(valid=True) for _ in turn.candidates]


@dataclass
class Hands:
    """A clock that only a test moves."""

    at: float = 100.0

    def __call__(self) -> float:
        return self.at


def test_time_counts_for_what_is_going_on():
    hands = Hands()
    spent = SpentTime(hands)
    hands.at += 7  # thinking
    with spent.on("builds"):
        hands.at += 60
        with spent.on("fills"):  # another candidate's, at the same time
            hands.at += 5
    with spent.on("fills"):
        hands.at += 2
    with spent.on("runs"):
        hands.at += 3
        assert spent.each_s == {"runs": 3, "builds": 65, "fills": 2}
        hands.at += 1
    hands.at += 9
    assert spent.each_s == {"runs": 4, "builds": 65, "fills": 2}


def test_what_fails_takes_time_too():
    hands = Hands()
    spent = SpentTime(hands)
    with suppress(ValueError), spent.on("builds"):
        hands.at += 60
        raise ValueError("broken")
    hands.at += 5
    assert spent.each_s["builds"] == 60


@given(st.lists(st.tuples(st.sampled_from([*KINDS, None]), st.integers(0, 100)), max_size=20))
def test_no_second_counts_twice_however_things_overlap(moves):
    hands = Hands()
    spent, busy, going = SpentTime(hands), 0, 0
    with ExitStack() as open_ones:
        for kind, seconds in moves:
            if kind is None:
                open_ones.close()
                going = 0
            else:
                open_ones.enter_context(spent.on(kind))
                going += 1
            hands.at += seconds
            busy += seconds if going else 0
    assert sum(spent.each_s.values()) == busy
