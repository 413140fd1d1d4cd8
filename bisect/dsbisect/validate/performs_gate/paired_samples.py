"""Samples of both sides in pairs, until a rule is satisfied; each is stored at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from dsbisect.lab.campaign_loop import run_campaign
from dsbisect.lab.candidates import Progress
from dsbisect.lab.lab_plan import LabPlan
from dsbisect.lab.laboratory import Laboratory, open_lab
from dsbisect.search.question import History, Question
from dsbisect.search.search_loop import Rounds
from dsbisect.validate.trial import Trial
from dsbuilds.built_row import check_promise
from dsharness.measure.golden_state import Golden
from dsharness.model import DECIDER, Image, Sample, SystemName, Workload
from dsresults.compare.campaign_column import pairs


@dataclass(frozen=True, kw_only=True)
class TwoSides:
    """A ``Supply``: both images exist already."""

    trial: Trial

    @property
    def identities(self) -> Mapping[str, str]:
        return {}

    @property
    def runtimes(self) -> Mapping[str, str]:
        return {}

    def uneven(self) -> tuple[str, ...]:
        return ()

    def image(self, candidate: str, progress: Progress) -> Image:
        del progress
        return self.trial.stock if candidate == self.trial.row.id else self.trial.patched

    def system(self, candidate: str) -> SystemName:
        del candidate
        return self.trial.row.system

    def check(self, candidate: str, golden: Golden) -> None:
        del candidate
        check_promise(golden)


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
    trial: Trial,
    lab: Laboratory,
    workload: Workload,
    enough: Callable[[Pairs], bool],
    most: int,
    metric: str = DECIDER,
) -> SampledPairs:
    """Samples of an earlier run of the same question count."""
    for failure in lab.failures.values():
        raise failure
    sides = (trial.row.id, trial.patched_row.id)

    def missing(history: History) -> int:
        state = _state([*history.of(sides[0]), *history.of(sides[1])], *sides)
        left = max(0, most - len(state.pairs))
        return 0 if state.refused or enough(state.pairs) else left

    question = Question(
        series_id=trial.patched_row.id,
        line=sides,
        workload_id=workload.id,
        settings_id=trial.settings.id,
        metric=metric,
    )
    trial.wait_until_alone()
    campaign = run_campaign(
        question, workload, search=Rounds(missing=missing, open_end=True),
        lab=lab, store=trial.store, listener=trial.watcher, kind="validate",
    )  # fmt: skip
    return _state(trial.store.samples(campaign_id=campaign.id), *sides)


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
