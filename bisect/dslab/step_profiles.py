"""Profiles of both sides of what searches found, each in a run of its own after the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from dsharness.errors import DsbisectError, StoppedError
from dsharness.measure.metrics import FUTEXES, GROWTH, INSTRUCTIONS, MEMORY, SWITCHES, WAKE_UPS
from dsharness.model import (
    Campaign,
    CpuProfile,
    FunctionCounts,
    HeapGrowth,
    ServerTimes,
    ThreadWaits,
    ToolRuns,
    Value,
    Workload,
)
from dslab.observer import Observer
from dsresults.profile_pair import ProfilePair, stored_profiles
from dsresults.store import Store


class Profiler(Protocol):
    """What can look at a candidate; ``dslab.inspections`` has a lab's."""

    def profile(self, candidate: str, workload: Workload) -> CpuProfile: ...

    def server_times(self, candidate: str, workload: Workload) -> ServerTimes | None: ...

    def function_counts(self, candidate: str, workload: Workload) -> FunctionCounts: ...

    def heap_growth(self, candidate: str, workload: Workload) -> HeapGrowth: ...

    def thread_waits(self, candidate: str, workload: Workload) -> ThreadWaits: ...

    def second_tool(self, candidate: str, workload: Workload) -> ToolRuns | None: ...


def profile_steps(
    campaigns: Iterable[Campaign],
    workloads: Sequence[Workload],
    lab: Profiler,
    store: Store,
    observer: Observer,
) -> tuple[ProfilePair, ...]:
    """A stored pair for each answer: the sides of its step, or both ends where it has none."""
    return tuple(
        stored_pair(
            campaign.id, sides_of(campaign), workload, lab, store, observer, metric=campaign.metric
        )
        for campaign in campaigns
        for workload in workloads
        if campaign.workload_id == workload.id and campaign.boundary is not None
    )


def stored_pair(
    campaign_id: str,
    names: tuple[str, str],
    workload: Workload,
    lab: Profiler,
    store: Store,
    observer: Observer,
    *,
    metric: str,
) -> ProfilePair:
    """The pair that is known of a campaign, otherwise all that this lab can tell."""
    for stored_pair in stored_profiles(store, [campaign_id]):
        return stored_pair
    pair = profile_pair(campaign_id, names, workload, lab, observer, metric=metric)
    for stored_pair in stored_profiles(store, [campaign_id]):  # by another machine meanwhile
        return stored_pair
    if pair.whole:  # the next run tries again what could not be had
        store.put(pair.finding)
    return pair


# Metrics whose cause is looked for in the heap, and where threads wait.
HEAP = frozenset({GROWTH.name, MEMORY.name})
WAITS = frozenset({SWITCHES.name, WAKE_UPS.name, FUTEXES.name})


def profile_pair(
    campaign_id: str,
    names: tuple[str, str],
    workload: Workload,
    lab: Profiler,
    observer: Observer,
    *,
    metric: str,
) -> ProfilePair:
    """Both sides by perf, logs and a second tool; by what else explains the metric."""
    looks: dict[str, tuple[Callable[[str, Workload], Value | None], str]] = {
        "profiles": (lab.profile, "profiling"),
        "times": (lab.server_times, "writing its log under"),
        "tools": (lab.second_tool, "asking by two tools for"),
    }
    if metric == INSTRUCTIONS.name:
        looks["counts"] = (lab.function_counts, "counting instructions under")
    if metric in HEAP:
        looks["heap"] = (lab.heap_growth, "looking for memory that stays under")
    if metric in WAITS:
        looks["waits"] = (lab.thread_waits, "looking where threads wait under")
    facts: dict[str, object] = {}
    for inspection, (look, doing) in looks.items():
        sides, why = seen_of_both(names, workload, look, observer, doing)
        both_sides = tuple(sides[name] for name in names) if len(sides) == len(names) else ()
        if inspection == "profiles":
            facts |= {"before": sides.get(names[0]), "after": sides.get(names[1]), "note": why}
        else:
            facts |= {inspection: both_sides, f"{inspection}_note": why}
    return ProfilePair(campaign_id=campaign_id, workload_id=workload.id, names=names).model_copy(
        update=facts
    )


Seen = TypeVar("Seen")


def seen_of_both(
    names: tuple[str, str],
    workload: Workload,
    look: Callable[[str, Workload], Seen | None],
    observer: Observer,
    doing: str,
) -> tuple[dict[str, Seen], str]:
    """What was seen of each side, as far as it went, and why it went no further."""
    sightings: dict[str, Seen] = {}
    for name in names:
        observer.preparing(name, f"{doing} {workload.id}")
        try:
            if (sighting := look(name, workload)) is not None:
                sightings[name] = sighting
        except StoppedError:
            raise
        except DsbisectError as error:  # no profile changes an answer
            return sightings, f"{name}: {error.message.splitlines()[0]}"
    return sightings, ""


def sides_of(campaign: Campaign) -> tuple[str, str]:
    """The candidates to compare."""
    boundary = campaign.boundary
    if boundary is None:
        raise AssertionError(f"campaign {campaign.id} has no answer")
    if boundary.found and boundary.before and boundary.after:
        return boundary.before, boundary.after
    return boundary.line[0], boundary.line[-1]
