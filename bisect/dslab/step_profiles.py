"""Profiles of both sides of what searches found, each in a run of its own after the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from dsharness.errors import DsbisectError, StoppedError
from dsharness.model import Campaign, CpuProfile, ServerTimes, Workload
from dslab.watcher import Watcher
from dsresults.profile_pair import ProfilePair, profiles_of
from dsresults.store import Store


class Profiler(Protocol):
    """What can profile a candidate."""

    def profile(self, candidate: str, workload: Workload) -> CpuProfile: ...

    def server_times(self, candidate: str, workload: Workload) -> ServerTimes | None: ...


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
    names = sides_of(campaign)
    profiles, why = _both(names, workload, lab.profile, watcher, "profiling")
    times, why_no_times = _both(names, workload, lab.server_times, watcher, "writing its log under")
    pair = ProfilePair(
        campaign_id=campaign.id,
        workload_id=workload.id,
        names=names,
        before=profiles.get(names[0]),
        after=profiles.get(names[1]),
        note=why,
        times=tuple(times[name] for name in names) if len(times) == len(names) else (),
        times_note=why_no_times,
    )
    if not (why or why_no_times):  # the next run tries again what could not be had
        store.add_finding(pair.finding)
    return pair


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


def sides_of(campaign: Campaign) -> tuple[str, str]:
    """The candidates to compare."""
    found = campaign.boundary
    if found is None:
        raise AssertionError(f"campaign {campaign.id} has no answer")
    if found.found and found.before and found.after:
        return found.before, found.after
    return found.line[0], found.line[-1]
