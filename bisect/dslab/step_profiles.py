"""Profiles of both sides of what searches found, each in a run of its own after the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from dsharness.errors import DsbisectError, StoppedError
from dsharness.model import Campaign, CpuProfile, FunctionCounts, ServerTimes, Workload
from dslab.watcher import Watcher
from dsresults.profile_pair import ProfilePair, profiles_of
from dsresults.store import Store


class Profiler(Protocol):
    """What can look at a candidate: in valgrind for its instructions, else for its time."""

    @property
    def in_valgrind(self) -> bool: ...

    def profile(self, candidate: str, workload: Workload) -> CpuProfile: ...

    def server_times(self, candidate: str, workload: Workload) -> ServerTimes | None: ...

    def function_counts(self, candidate: str, workload: Workload) -> FunctionCounts: ...


def profile_steps(
    campaigns: Iterable[Campaign],
    workloads: Sequence[Workload],
    lab: Profiler,
    store: Store,
    watcher: Watcher,
) -> tuple[ProfilePair, ...]:
    """A stored pair for each answer: the sides of its step, or both ends where it has none."""
    return tuple(
        _stored(campaign, workload, lab, store, watcher)
        for campaign in campaigns
        for workload in workloads
        if campaign.workload_id == workload.id and campaign.boundary is not None
    )


def _stored(
    campaign: Campaign, workload: Workload, lab: Profiler, store: Store, watcher: Watcher
) -> ProfilePair:
    for known in profiles_of(store.findings(), [campaign.id]):
        return known
    pair = profile_pair(campaign.id, sides_of(campaign), workload, lab, watcher)
    if pair.whole:  # the next run tries again what could not be had
        store.add_finding(pair.finding)
    return pair


def profile_pair(
    campaign_id: str, names: tuple[str, str], workload: Workload, lab: Profiler, watcher: Watcher
) -> ProfilePair:
    """All that this lab can tell of both sides."""
    pair = ProfilePair(campaign_id=campaign_id, workload_id=workload.id, names=names)
    if lab.in_valgrind:
        counts, why = _both(names, workload, lab.function_counts, watcher, "counting under")
        return pair.model_copy(update={"counts": _whole(names, counts), "counts_note": why})
    profiles, why = _both(names, workload, lab.profile, watcher, "profiling")
    times, why_not = _both(names, workload, lab.server_times, watcher, "writing its log under")
    seen = {
        "before": profiles.get(names[0]),
        "after": profiles.get(names[1]),
        "note": why,
        "times": _whole(names, times),
        "times_note": why_not,
    }
    return pair.model_copy(update=seen)


Seen = TypeVar("Seen")


def _both(
    names: tuple[str, str],
    workload: Workload,
    look: Callable[[str, Workload], Seen | None],
    watcher: Watcher,
    doing: str,
) -> tuple[dict[str, Seen], str]:
    """What was seen of each side, as far as it went, and why it went no further."""
    seen: dict[str, Seen] = {}
    for name in names:
        watcher.preparing(name, f"{doing} {workload.id}")
        try:
            if (found := look(name, workload)) is not None:
                seen[name] = found
        except StoppedError:
            raise
        except DsbisectError as error:  # no profile changes an answer
            return seen, f"{name}: {error.message.splitlines()[0]}"
    return seen, ""


def _whole(names: tuple[str, str], seen: Mapping[str, Seen]) -> tuple[Seen, ...]:
    """Both sides, or none."""
    return tuple(seen[name] for name in names) if len(seen) == len(names) else ()


def sides_of(campaign: Campaign) -> tuple[str, str]:
    """The candidates to compare."""
    found = campaign.boundary
    if found is None:
        raise AssertionError(f"campaign {campaign.id} has no answer")
    if found.found and found.before and found.after:
        return found.before, found.after
    return found.line[0], found.line[-1]
