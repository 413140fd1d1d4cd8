"""Machines of a fleet: which may take a turn, which are dead, and what each has to do.

Rules are pure. Neither searches nor labs are loaded here, since people wait for what is shown.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dsharness.errors import UsageError
from dsharness.machine.host import place_id
from dsharness.model import Abilities, FleetMachine, Machine, Sample, SharedRun, Turn
from dsharness.model.campaign import NAMESPACE
from dsresults.store import Store
from dsresults.store.fleet_records import find_machines, machine_holders

DEAD_S = 45.0  # without a sign of life; looked at every 15 s, so noticed within a minute
BEAT_S = 10.0
MACHINES = re.compile(r"(?:([1-9][0-9]{0,5})\.\.)?([1-9][0-9]{0,5})")


@dataclass(frozen=True, kw_only=True)
class MachineCount:
    """How many machines a run begins with at least, and has at most."""

    at_least: int
    at_most: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Read ``N`` (at most) or ``A..B``; UsageError for anything else."""
        match = MACHINES.fullmatch(text)
        at_least, at_most = (int(part or 1) for part in match.groups()) if match else (1, 0)
        if at_least > at_most:
            raise UsageError(
                f"--machines {text}: neither a number above 0 nor a range of two",
                hint="4: at most four; 2..4: at least two, at most four",
            )
        return cls(at_least=at_least, at_most=at_most)


@dataclass(frozen=True, kw_only=True)
class FleetMember:
    """A machine as the fleet sees it now."""

    machine: FleetMachine
    alive: bool
    silent_s: float | None = None  # None where no process stands for it
    unreadable: str = ""  # why what it says of itself cannot be read: it gets no turns


def class_of(machine: Machine) -> str:
    """Machines that may measure for one search: equal in CPU, kernel's major version, engine."""
    names = ("cpu_model", "architecture", "kernel", "runtime", "cgroups")
    cpu, architecture, kernel, runtime, cgroups = (machine.facts.get(name, "?") for name in names)
    rights = "rootless" if machine.facts.get("rootless") else "root"
    engine = f"{runtime or 'runtime of podman'}, cgroups {cgroups}, {rights}"
    return f"{cpu}, {architecture}, Linux {str(kernel).partition('.')[0]}, {engine}"


def strayed(sample: Sample, machine: str, class_name: str) -> str:
    """Return why a sample is not what that machine of that class was to measure; empty if it is."""
    if sample.machine.id != machine:
        return f"a sample is of another machine, {sample.machine.id[:8]}"
    class_found = class_of(sample.machine)
    return "" if class_found == class_name else f"a sample is of another class, {class_found}"


def told_abilities(can: Abilities | None) -> str:
    """Return what a machine can do, in words."""
    if can is None:
        return "can: unknown"
    counters = "hardware counters" if can.counters else "no hardware counters"
    pins = "CPU pinning" if can.pins_cpus else "no CPU pinning"
    return f"can: rows of {', '.join(can.families)}; {counters}; {pins}"


def fleet_of(store: Store) -> list[FleetMember]:
    """Return every machine that is known, by name."""
    here = place_id()
    with store.database.reading() as connection:
        holders = machine_holders(connection)
        machines = find_machines(connection)
    members: list[FleetMember] = []
    for machine, why in machines:
        holder, silent_s = holders.get(machine.id, (None, None))
        alive = (
            holder is not None
            and silent_s is not None
            and not holder.silent(silent_s, here, DEAD_S)
        )
        members.append(FleetMember(machine=machine, alive=alive, silent_s=silent_s, unreadable=why))
    return members


def fit_for(run: SharedRun, fleet: Sequence[FleetMember]) -> tuple[FleetMachine, ...]:
    """Return machines that may take turns of a run now: alive, not drained, of its one class."""
    usable = [
        member.machine
        for member in fleet
        if member.alive and not member.machine.drained and member.machine.id not in run.left_out
    ]
    class_wanted = run.prepared.class_name if run.prepared else run.class_name or _largest(usable)
    return tuple(machine for machine in usable if machine.class_name == class_wanted)


def awaits_more(run: SharedRun, fleet: Sequence[FleetMember]) -> bool:
    """Whether a run has yet to begin, with too few machines; once begun, any number will do."""
    has_begun = run.prepared is not None or bool(run.preparing)
    return not has_begun and len(fit_for(run, fleet)) < run.at_least


def _largest(machines: Sequence[FleetMachine]) -> str:
    """Return the class that most of them have; of equals the first by name."""
    counted = Counter(machine.class_name for machine in machines)
    return min(counted, key=lambda name: (-counted[name], name), default="")


def free_for(
    run: SharedRun,
    fleet: Sequence[FleetMember],
    busy: Collection[str],
    load: Mapping[str, int] | None = None,
) -> tuple[FleetMachine, ...]:
    """Return those of them that have no turn of this run, as many as the run may still use.

    First the one that prepared it and those that had turns of it, which have built what others have
    yet to build; then those with the smallest ``load``: turns of any run.
    """
    fit = fit_for(run, fleet)
    at_work = sum(machine.id in busy for machine in fit)
    free = [machine for machine in fit if machine.id not in busy]
    builders, waiting = {run.preparing, *run.took_part}, load or {}
    free.sort(key=lambda machine: (machine.id not in builders, waiting.get(machine.id, 0)))
    return tuple(free[: max(0, run.machines - at_work)])


def may_advance(run: SharedRun, fleet: Sequence[FleetMember], busy: Collection[str]) -> bool:
    """Return whether planning could change a run: a machine is lost, free, or none is at work."""
    if run.alone is not None:
        return not run.alone or bool(lost_to(run, fleet, [run.alone]))
    return not busy or bool(lost_to(run, fleet, busy)) or bool(free_for(run, fleet, busy))


def lost_to(run: SharedRun, fleet: Sequence[FleetMember], busy: Collection[str]) -> set[str]:
    """Return the machines that will not end their turn: dead, forgotten or left out."""
    living = {member.machine.id for member in fleet if member.alive}
    return {machine for machine in busy if machine not in living or machine in run.left_out}


def campaign_id_of(run: SharedRun, number: int) -> str:
    """Return the id of a run's question by its number; whoever asks first stores the campaign."""
    return str(uuid.uuid5(NAMESPACE, f"{run.id}/question/{number}"))


def planned_turns(store: Store, runs: Iterable[SharedRun]) -> dict[str, list[Turn]]:
    """Return what machines have of these runs, by a run's id; asked for all runs at once."""
    open_runs, number, run_of = list(runs), 0, dict[str, str]()
    while open_runs:
        ids = {campaign_id_of(run, number): run for run in open_runs}
        campaign_ids = store.campaigns_there(ids)
        run_of |= {campaign_id: ids[campaign_id].id for campaign_id in campaign_ids}
        open_runs, number = (
            [ids[campaign_id] for campaign_id in ids if campaign_id in campaign_ids],
            number + 1,
        )
    turns_by_run: dict[str, list[Turn]] = {}
    for turn in store.planned_turns():
        if turn.campaign_id in run_of:
            turns_by_run.setdefault(run_of[turn.campaign_id], []).append(turn)
    return turns_by_run
