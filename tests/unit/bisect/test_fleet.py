"""Which machines may take a turn, and which have lost theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import sample_of

from dsharness.containers.engine import Engine
from dsharness.errors import UsageError
from dsharness.model import Abilities, Family, FleetMachine, Machine, Prepared, SharedRun
from dsmany.fleet import (
    FleetMember,
    MachineCount,
    awaits_more,
    class_of,
    fit_for,
    free_for,
    lost_to,
    may_advance,
    strayed,
    told_abilities,
)
from dsmany.job_queue import shared_place
from dsmany.this_machine import abilities_of
from dsmany.worker_role import WRITES, role_sql
from dsresults.store.tables import METADATA
from dssearch.question import History

FACTS = {
    "cpu_model": "EPYC", "architecture": "x86_64", "kernel": "6.1.0-9", "rootless": False,
    "runtime": "crun", "cgroups": "v2", "cpu_count": 4,
}  # fmt: skip


def member(name: str, class_name: str = "big", *, alive: bool = True, drained: bool = False):
    machine = FleetMachine(
        id=name, name=name, class_name=class_name, drained=drained, since="2026-11-26T12:00:00"
    )
    return FleetMember(machine=machine, alive=alive)


def run(**facts: object) -> SharedRun:
    return SharedRun.model_validate(
        {"id": "r", "request_key": "k", "started_at": "2026-11-26T12:00:00+00:00", "request": {},
         "machines": 2, **facts}
    )  # fmt: skip


def prepared(class_name: str) -> Prepared:
    return Prepared(class_name=class_name)


def names(machines: tuple[FleetMachine, ...]) -> list[str]:
    return [machine.name for machine in machines]


@pytest.mark.parametrize(
    ("changed", "equal"),
    [
        ({"kernel": "6.12.1"}, True),
        ({"cpu_count": 64}, True),
        ({"kernel": "5.15.0"}, False),
        ({"cpu_model": "Xeon"}, False),
        ({"runtime": "runc"}, False),
        ({"cgroups": "v1"}, False),
        ({"rootless": True}, False),
    ],
)
def test_a_class_is_cpu_kernel_and_engine(changed: dict[str, object], *, equal: bool) -> None:
    one, other = Machine(id="a", facts=FACTS), Machine(id="b", facts=FACTS | changed)
    assert (class_of(one) == class_of(other)) is equal


def test_what_a_machine_can_do_is_told_in_words_and_unknown_of_an_older_worker() -> None:
    can = Abilities(families=(Family.APT, Family.DNF), counters=False, pins_cpus=True)
    assert told_abilities(can) == "can: rows of apt, dnf; no hardware counters; CPU pinning"
    other = Abilities(families=(Family.FREEIPA,), counters=True, pins_cpus=False)
    assert told_abilities(other) == "can: rows of freeipa; hardware counters; no CPU pinning"
    old = {name: fact for name, fact in member("a").machine.model_dump().items() if name != "can"}
    assert told_abilities(FleetMachine.model_validate(old).can) == "can: unknown"


@pytest.mark.parametrize("bootstraps", [True, False])
def test_a_machine_makes_bases_by_mmdebstrap_or_takes_a_registry_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, bootstraps: bool
) -> None:
    if bootstraps:
        (tmp_path / "mmdebstrap").write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "mmdebstrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = Engine(
        podman_version="5", rootless=True, cgroups="v2", runtime="crun", pins_cpus=bootstraps,
        limits_memory=True,
    )  # fmt: skip
    can = abilities_of(engine)
    assert can.families == (tuple(Family) if bootstraps else (Family.FREEIPA,))
    assert can.pins_cpus is bootstraps


def test_a_sample_strays_where_it_says_another_machine_or_class() -> None:
    mine = class_of(Machine(id="a", facts=FACTS))
    taken = sample_of("x", 1.0, 0, machine={"id": "a", "facts": FACTS})
    assert strayed(taken, "a", mine) == ""
    assert strayed(taken, "b", mine) == "a sample is of another machine, a"
    xeon = sample_of("x", 1.0, 0, machine={"id": "a", "facts": FACTS | {"cpu_model": "Xeon"}})
    assert "another class, Xeon, x86_64" in strayed(xeon, "a", mine)
    nothing = sample_of("x", 1.0, 0, machine={"id": "a"})
    assert "another class, ?, ?, Linux ?" in strayed(nothing, "a", mine)


def test_the_largest_class_of_living_machines_begins() -> None:
    fleet = [
        member("a", "small"), member("b"), member("c"), member("d", "small", alive=False),
        member("e", "small", drained=True),
    ]  # fmt: skip
    assert names(fit_for(run(), fleet)) == ["b", "c"]
    assert names(fit_for(run(class_name="small"), fleet)) == ["a"]
    assert names(fit_for(run(prepared=prepared("small")), fleet)) == ["a"]
    assert names(fit_for(run(left_out={"b": "no disk"}), [fleet[1], fleet[2]])) == ["c"]
    assert not fit_for(run(), [])


def test_a_run_has_no_more_machines_than_it_asked_for() -> None:
    fleet = [member(name) for name in "abc"]
    assert names(free_for(run(), fleet, ())) == ["a", "b"]
    assert names(free_for(run(), fleet, {"b"})) == ["a"]
    assert not free_for(run(), fleet, {"a", "b"})
    assert names(free_for(run(preparing="c"), fleet, ())) == ["c", "a"]  # it is ready


@given(numbers=st.tuples(st.integers(1, 10**6 - 1), st.integers(1, 10**6 - 1)))
def test_a_number_of_machines_is_read_as_it_was_written(numbers: tuple[int, int]) -> None:
    at_least, at_most = sorted(numbers)
    count = MachineCount(at_least=at_least, at_most=at_most)
    assert MachineCount.read(f"{at_least}..{at_most}") == count
    assert MachineCount.read(str(at_most)) == MachineCount(at_least=1, at_most=at_most)


@pytest.mark.parametrize(
    "told",
    ["4..2", "0..1", "0", "two", "", "-1", "2..", "..4", "2...4", "1..2..3", "2-4", "٣", "4\n"],
)
def test_what_is_no_number_of_machines_is_refused(told: str) -> None:
    with pytest.raises(UsageError, match="neither a number above 0 nor a range") as refused:
        MachineCount.read(told)
    assert f"--machines {told}: " in refused.value.message
    assert "2..4: at least two" in (refused.value.hint or "")


def test_a_run_begins_when_as_many_of_one_class_are_there() -> None:
    fleet = [member("a"), member("b", "small"), member("c", alive=False)]
    assert not awaits_more(run(), fleet)
    assert awaits_more(run(), [])
    assert awaits_more(run(at_least=2), fleet)  # not of one class
    assert not awaits_more(run(at_least=2), [*fleet, member("d")])
    assert awaits_more(run(at_least=2, class_name="small"), [*fleet, member("d")])
    assert not awaits_more(run(at_least=2, preparing="c"), fleet)  # it has begun
    assert not awaits_more(run(at_least=2, prepared=prepared("big")), fleet)


def test_a_run_goes_to_those_who_know_it_then_to_those_with_the_least_to_do() -> None:
    fleet = [member(name) for name in "abcd"]
    load = {"a": 3, "b": 1, "d": 2}
    assert names(free_for(run(machines=4), fleet, (), load)) == ["c", "b", "d", "a"]
    assert names(free_for(run(took_part=("d",)), fleet, (), load)) == ["d", "c"]
    assert names(free_for(run(took_part=("d",), preparing="a"), fleet, (), load)) == ["d", "a"]


def test_a_run_is_planned_only_where_that_could_change_something() -> None:
    fleet = [member("a"), member("b"), member("c", alive=False)]
    ready = run(prepared=prepared("big"), unprepared=False)
    assert not may_advance(ready, fleet, {"a", "b"})
    assert may_advance(ready, fleet, {"a"})  # b is free
    assert may_advance(ready, fleet, {"a", "c"})  # c is dead
    assert may_advance(ready, [], ())  # its answer may follow from what is stored
    assert may_advance(run(), fleet, ())
    assert not may_advance(run(preparing="a"), fleet, ())
    assert may_advance(run(preparing="c"), fleet, ())


def test_turns_of_the_dead_the_forgotten_and_the_left_out_are_lost() -> None:
    fleet = [member("a"), member("b", alive=False), member("c"), member("d", drained=True)]
    lost = lost_to(run(left_out={"c": "strays"}), fleet, {"a", "b", "c", "d", "unknown"})
    assert lost == {"b", "c", "unknown"}  # a drained one ends what it has


def test_each_machine_has_images_of_its_own() -> None:
    """Another image makes older samples of its machine outdated, and of no other."""
    taken = [
        sample_of("x", 1.0, number, machine={"id": machine}, image_key=image)
        for number, (machine, image) in enumerate([("a", "1"), ("b", "2"), ("a", "1"), ("b", "2")])
    ]
    assert len(History.of_samples(taken).of("x")) == 4
    again = sample_of("x", 1.0, 4, machine={"id": "b"}, image_key="3")
    kept = History.of_samples(taken).after([again], {}).of("x")
    assert [(each.machine.id, each.image_key) for each in kept] == [
        ("a", "1"), ("a", "1"), ("b", "3"),
    ]  # fmt: skip


@pytest.mark.parametrize("url", ["results.db", "sqlite:///results.db"])
def test_machines_share_no_file(url: str) -> None:
    with pytest.raises(UsageError, match="not a file"):
        shared_place(url)


def test_the_place_is_shown_without_its_password() -> None:
    assert "tricky" not in str(shared_place("postgresql://lab:tricky@db/dsbisect"))


@pytest.mark.parametrize("name", ["", "Lab", 'a"; DROP TABLE samples; --', "a'b", "-a", "x" * 64])
def test_a_name_that_is_no_host_s_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        role_sql(name)


def test_a_role_is_given_rights_on_every_table() -> None:
    told = role_sql("lab-1.example.org")
    assert all(f" {name}" in told for name in METADATA.tables)
    assert set(WRITES) <= set(METADATA.tables)
    assert "DELETE ON samples" not in told
