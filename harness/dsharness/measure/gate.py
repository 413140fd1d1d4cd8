"""The gate that every sample passes, or it is INCONCLUSIVE with these reasons. Pure.

Three kinds of facts about a run are separate:

- *objections*: the run does not say what the candidate costs, so it is not used;
- *disturbances*: why an objection is not the candidate's fault, so the run is repeated;
- the state of the machine (stolen time, a slow calibrator): never a reason to refuse a run. It
  goes into the sample, and the search gives such a run less weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsharness.loads import LoadReport
from dsharness.loads.load_driver import OVER_TIME
from dsharness.model import Sample
from dsharness.systems.system import CannotCount

COUNT_TOLERANCE = 0.01
LOAD_SHARE = 0.90  # of the load's own CPUs: then it sets the pace
MOST_WAITED = 0.3  # of a run: docs/verdicts.md has what was measured
STILL_S = 2.0  # this long without CPU is more than a busy machine


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What happened to the lab and its containers during a run."""

    gap_s: float = 0.0
    paused_s: float = 0.0
    suspended_s: float = 0.0
    stepped_s: float = 0.0
    killed: str | None = None  # the container that was ended from outside


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """Everything the gate looks at."""

    operations: int  # that the load was to make
    may_miss: float = 0.0  # such a share of them
    threads: int
    report: LoadReport
    of_load: tuple[str, ...] = ()  # what the load's driver objects to in the load itself
    overfilled: str | None = None  # that the server was ended for what it wrote
    server_alive: bool = True
    server_operations: int | CannotCount | None = None
    server_cpu_us: float | None = None
    of_system: tuple[str, ...] | None = None  # what its driver objects to; None: it was not asked
    conditions: Conditions = Conditions()


Gate = Callable[[RunEvidence], tuple[str, ...]]  # why a run may not be used


def objections(evidence: RunEvidence) -> tuple[str, ...]:
    """Return why a timed run may not be used; empty when it may."""
    load = _load(evidence)
    return (*load, *evidence.of_load, *_server(evidence))


def count_objections(evidence: RunEvidence) -> tuple[str, ...]:
    """Return why a run whose instructions are counted may not be used.

    No time of it is used, and a server that does other work gives no two counts that agree.
    """
    if not evidence.report.errors and evidence.report.total == evidence.operations:
        return ()
    return (f"{evidence.report.total or 0} of {evidence.operations} operations succeeded",)


def disturbances(evidence: RunEvidence, gate: Gate = objections) -> tuple[str, ...]:
    """What outside the candidate explains the objections; empty if something is its own fault."""
    crashed = not evidence.server_alive and not evidence.conditions.killed
    if crashed or evidence.of_system or not gate(evidence):
        return ()
    return (*evidence.of_load, *_outside(evidence.conditions))


def out_of_time(evidence: RunEvidence) -> bool:
    """Whether a run was refused for its time alone: then its system is slow, and is not broken.

    What failed, what was disturbed, and what no longer answers tells nothing of a cost.
    """
    report, used_us = evidence.report, evidence.server_cpu_us
    sound = evidence.server_alive and evidence.of_system == () and not evidence.of_load
    failed = {why for why in report.errors if why != OVER_TIME}
    undisturbed = not any(_outside(evidence.conditions))
    incomplete = (report.total or 0) < evidence.operations
    return report.expired and sound and not failed and undisturbed and incomplete and bool(used_us)


def most_operations(evidence: RunEvidence) -> int:
    """Return how many a run made at most whose time was up, those under way included."""
    operations = evidence.report.total
    if operations is None and isinstance(evidence.server_operations, int):
        operations = evidence.server_operations
    all_operations = evidence.operations
    return (
        all_operations
        if operations is None
        else min(all_operations, max(0, operations) + evidence.threads)
    )


def load_bound(
    client_cpu_us: float | None, active_s: float, cpus: int, starved_us: float = 0.0
) -> bool:
    """Return whether the load never waited for the server, so that the rate is its own.

    It used all of its CPUs, or others used them when it could have run.
    """
    most_us = LOAD_SHARE * active_s * 1e6 * max(1, cpus)
    return client_cpu_us is not None and client_cpu_us + starved_us > most_us


def starved(sample: Sample) -> str:
    """Return who waited for a CPU that others had, where the run's times are theirs for that.

    Threads of a busy server wait for each other, too: what others cannot have caused is left out.
    """
    taken = (sample.taken_pct or 0.0) / 100
    server, load = (
        (waited_s or 0.0) / sample.duration_s if sample.duration_s else 0.0
        for waited_s in (sample.server_waited_s, sample.load_waited_s)
    )
    facts = sample.machine.facts
    alone = facts.get("server_cpus") != facts.get("load_cpus")  # the load, on CPUs of its own
    shares = {"server": min(server, taken), "load": load if alone else min(load, taken)}
    who = [name for name, share in shares.items() if share > MOST_WAITED]
    return f"the {' and the '.join(who)} waited for a CPU that other programs had" if who else ""


def is_fed(sample: Sample) -> bool:
    """Whether its rate is the row's: it is valid, and nobody waited for a CPU that others had."""
    return sample.valid and not starved(sample)


def _load(evidence: RunEvidence) -> Iterator[str]:
    report, operations = evidence.report, evidence.operations
    for error, times in report.errors.items():
        yield f"the load met error {error} {times} times"
    if report.exit_status is None:
        yield "the load did not finish"
    elif report.exit_status != 0:
        yield f"the load ended with status {report.exit_status}"
    if not report.total:
        yield "the load reports no operation"
    elif abs(report.total - operations) > evidence.may_miss * operations:
        yield f"the load made {report.total} of {operations} operations"


def _server(evidence: RunEvidence) -> Iterator[str]:
    if not evidence.server_alive:
        yield evidence.overfilled or "the server died during the load"
        return
    if evidence.server_cpu_us is None:
        yield "the server's CPU time could not be read"
    elif evidence.server_cpu_us <= 0:
        yield "the server used no CPU time"
    if evidence.of_system is None:
        yield "the server's settings could not be read back"
    else:
        yield from evidence.of_system
    total, counted = evidence.report.total, evidence.server_operations
    if evidence.report.verified and not evidence.report.exact:
        return  # it has looked at each answer
    if counted is None:
        yield "the server's own count of operations could not be read"
    elif isinstance(counted, CannotCount):
        yield f"the server does not count ({counted.why}), and the load verified no answer"
    elif total and abs(counted - total) > _tolerance(evidence):
        yield f"the server counted {counted} operations, the load {total}"


def _tolerance(evidence: RunEvidence) -> float:
    """Return by how many operations both counts may differ."""
    report = evidence.report
    return 0 if report.exact else max(COUNT_TOLERANCE * (report.total or 0), evidence.threads)


def _outside(conditions: Conditions) -> Iterator[str]:
    if conditions.killed:
        yield f"{conditions.killed} was ended from outside"
    if conditions.paused_s > 0:
        yield f"a container was paused for {conditions.paused_s:.1f} s"
    if conditions.suspended_s > STILL_S:
        yield f"the machine was suspended for {conditions.suspended_s:.0f} s"
    if conditions.gap_s > STILL_S:
        yield f"the lab itself got no CPU for {conditions.gap_s:.1f} s"
    if abs(conditions.stepped_s) > STILL_S:
        yield f"the clock was set by {conditions.stepped_s:+.0f} s"
