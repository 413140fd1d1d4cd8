"""Samples of both sides in pairs, until a rule is satisfied; each is stored at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from dsbisect.lab.lab_plan import LabPlan
from dsbisect.lab.laboratory import Laboratory, open_lab
from dsbisect.validate.performs_gate.two_sides import TwoSides
from dsbisect.validate.trial import Trial
from dsharness.content_key import content_key
from dsharness.model import DECIDER, Campaign, Sample, Workload
from dsresults.compare.paired_ratios import pairs

KIND: Literal["validate"] = "validate"
MOST_REFUSED = 6  # runs of a side in a row that may not be used
GIVE_MORE = "give --pairs a larger number, or free the machine of other work; it goes on from here"

Pairs = Sequence[tuple[Sample, Sample]]  # (patched, stock)


@dataclass(frozen=True, kw_only=True)
class SampledPairs:
    """All pairs so far, and what is wrong with a side that gives no usable samples."""

    pairs: tuple[tuple[Sample, Sample], ...]
    samples: tuple[Sample, ...]
    refused: str | None = None  # the side
    disturbed: bool = False  # and the machine explains it


def opened_lab(trial: Trial, metric: str = DECIDER) -> AbstractContextManager[Laboratory]:
    """Both servers, filled for every workload of the profile."""
    plan = LabPlan.on(
        trial.engine,
        matrix=trial.matrix,
        settings=trial.settings,
        workloads=trial.workloads,
        metric=metric,
    )
    sides = (trial.row.id, trial.patched_row.id)
    return open_lab(
        plan, TwoSides(trial=trial), sides,
        engine=trial.engine, store=trial.store, watcher=trial.watcher,
    )  # fmt: skip


def sampled_pairs(
    trial: Trial, lab: Laboratory, workload: Workload, enough: Callable[[Pairs], bool], most: int
) -> SampledPairs:
    """Samples of an earlier run of the same question count."""
    for failure in lab.failures.values():
        raise failure
    sides = (trial.row.id, trial.patched_row.id)
    campaign = _campaign(trial, lab, workload)
    samples = trial.store.samples(campaign_id=campaign.id)
    turn = 1 + max((sample.turn for sample in samples), default=-1)
    while True:
        state = _state(samples, *sides)
        if state.refused or len(state.pairs) >= most or enough(state.pairs):
            return state
        for each in sides:
            lab.ready(each)
        order = sides if turn % 2 == 0 else sides[::-1]
        with trial.quiet():
            for sample in lab.samples(order, workload, campaign_id=campaign.id, turn=turn):
                trial.store.add_sample(sample)
                trial.watcher.sampled(sample)
                samples.append(sample)
        turn += 1


def _state(samples: Sequence[Sample], stock: str, patched: str) -> SampledPairs:
    of = {
        side: [sample for sample in samples if sample.candidate_id == side]
        for side in (stock, patched)
    }
    known = SampledPairs(pairs=pairs(of[patched], of[stock]), samples=tuple(samples))
    for side, taken in of.items():
        latest = taken[-MOST_REFUSED:]
        if len(latest) == MOST_REFUSED and not any(sample.valid for sample in latest):
            disturbed = any(sample.disturbed for sample in latest)
            return SampledPairs(
                pairs=known.pairs, samples=known.samples, refused=side, disturbed=disturbed
            )
    return known


def _campaign(trial: Trial, lab: Laboratory, workload: Workload) -> Campaign:
    """The one that was begun with these packages on this machine, or a new one."""
    asked = [
        workload.model_dump(mode="json"),
        dict(lab.identities),
        lab.setup.model_dump(mode="json"),
    ]
    fingerprint = content_key(asked)
    found = trial.store.unfinished_campaign(
        kind=KIND,
        series_id=trial.patched_row.id,
        workload_id=workload.id,
        settings_id=trial.settings.id,
        fingerprint=fingerprint,
    )
    if found is not None:
        return found
    campaign = Campaign(
        id=str(uuid.uuid4()),
        kind=KIND,
        series_id=trial.patched_row.id,
        line=(trial.row.id, trial.patched_row.id),
        workload_id=workload.id,
        settings_id=trial.settings.id,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        fingerprint=fingerprint,
    )
    trial.store.add_campaign(campaign)
    return campaign
