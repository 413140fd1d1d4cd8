"""Profiles of both sides of what searches found, each in a run of its own after the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from dsharness.errors import DsbisectError, StoppedError
from dsharness.model import Campaign, CpuProfile, Workload
from dslab.watcher import Watcher
from dsresults.profile_pair import ProfilePair, profiles_of
from dsresults.store import Store


class Profiler(Protocol):
    """What can profile a candidate."""

    def profile(self, candidate: str, workload: Workload) -> CpuProfile: ...


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
    before, after = sides_of(campaign)
    taken: dict[str, CpuProfile] = {}
    note = ""
    for candidate in (before, after):
        watcher.preparing(candidate, f"profiling {workload.id}")
        try:
            taken[candidate] = lab.profile(candidate, workload)
        except StoppedError:
            raise
        except DsbisectError as error:  # no profile changes an answer
            note = f"{candidate}: {error.message.splitlines()[0]}"
            break
    pair = ProfilePair(
        campaign_id=campaign.id,
        workload_id=workload.id,
        names=(before, after),
        before=taken.get(before),
        after=taken.get(after),
        note=note,
    )
    if not note:  # the next run tries again what could not be had
        store.add_finding(pair.finding)
    return pair


def sides_of(campaign: Campaign) -> tuple[str, str]:
    """The candidates to compare."""
    found = campaign.boundary
    if found is None:
        raise AssertionError(f"campaign {campaign.id} has no answer")
    if found.found and found.before and found.after:
        return found.before, found.after
    return found.line[0], found.line[-1]
