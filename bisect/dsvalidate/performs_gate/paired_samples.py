"""Samples of both sides in pairs, until a rule is satisfied; each is stored at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from dsharness.content_key import content_key
from dsharness.model import DECIDER, Image, Sample, Settings, SystemName, Workload
from dsharness.progress import Progress
from dslab.campaign_loop import CampaignOrder
from dslab.candidates import PackagedSupply
from dslab.lab_conditions import LabConditions
from dslab.laboratory import Laboratory, open_lab, refuse_failed
from dslab.watcher import Watcher
from dsresults.compare.comparison_table import pairs
from dsresults.store import Store
from dssearch.planner import Rounds
from dssearch.question import History, Question
from dsvalidate.step import MEASURED, code_key
from dsvalidate.step_tools import Sides, StepTools

MOST_REFUSED = 6  # runs of a side in a row that may not be used
GIVE_MORE = (
    "give --max-runs a larger number, or free the machine of other work; it goes on from here"
)

Pairs = Sequence[tuple[Sample, Sample]]  # (patched, stock)


@dataclass(frozen=True, kw_only=True)
class SampledPairs:
    """All pairs so far, and what is wrong with a side that gives no usable samples."""

    pairs: tuple[tuple[Sample, Sample], ...]
    samples: tuple[Sample, ...]
    refused: str | None = None  # the side
    disturbed: bool = False  # and the machine explains it


@dataclass(frozen=True, kw_only=True)
class SpeedQuestion:
    """Two sides, the workloads that they are compared under, and how sure it has to be."""

    sides: Sides
    tools: StepTools
    workloads: tuple[Workload, ...]
    settings: Settings
    margin_pct: float  # what is slower by less is not worse
    max_pairs: int  # of each workload
    store: Store
    watcher: Watcher
    alone: Callable[[], object]  # returns when nothing else of the validation is at work

    @property
    def line(self) -> tuple[str, str]:
        return (self.sides.row.id, self.sides.patched_row.id)


@dataclass(frozen=True, kw_only=True)
class TwoSides(PackagedSupply):
    """A ``Supply``: both images exist already."""

    question: SpeedQuestion

    @property
    def identities(self) -> Mapping[str, str]:
        """A sample of an earlier run counts if the same code measured the same state."""
        contents = [
            workload.content.model_dump(mode="json") for workload in self.question.workloads
        ]
        code = code_key(MEASURED)
        return {
            side: content_key([self._image(side).key, contents, code])
            for side in self.question.line
        }

    def image(self, candidate: str, progress: Progress) -> Image:
        del progress
        return self._image(candidate)

    def _image(self, candidate: str) -> Image:
        sides = self.question.sides
        return sides.stock if candidate == sides.row.id else sides.patched

    def system(self, candidate: str) -> SystemName:
        del candidate
        return self.question.sides.row.system


def opened_lab(
    question: SpeedQuestion, metric: str = DECIDER
) -> AbstractContextManager[Laboratory]:
    """Both servers, filled for every workload of the profile."""
    engine = question.tools.engine
    conditions = LabConditions.on(
        engine,
        matrix=question.tools.matrix,
        settings=question.settings,
        workloads=question.workloads,
        metric=metric,
    )
    return open_lab(
        conditions,
        TwoSides(question=question),
        question.line,
        engine=engine,
        store=question.store,
        watcher=question.watcher,
    )


def sampled_pairs(
    speed_question: SpeedQuestion,
    lab: Laboratory,
    workload: Workload,
    enough: Callable[[Pairs], bool],
    most: int,
    metric: str = DECIDER,
) -> SampledPairs:
    """Measure pairs until `enough`, continuing an earlier run."""
    refuse_failed(lab)
    stock, patched = speed_question.line

    def missing(history: History) -> int:
        state = _state([*history.of(stock), *history.of(patched)], stock, patched)
        pairs_left = max(0, most - len(state.pairs))
        return 0 if state.refused or enough(state.pairs) else pairs_left

    question = Question(
        series_id=patched,
        line=speed_question.line,
        workload_id=workload.id,
        settings_id=speed_question.settings.id,
        metric=metric,
    )
    speed_question.alone()
    campaign = CampaignOrder(
        question=question,
        workload=workload,
        search=Rounds(missing=missing, open_end=True),
        lab=lab,
        store=speed_question.store,
        kind="validate",
    ).run(speed_question.watcher)
    return _state(speed_question.store.samples(campaign_id=campaign.id), stock, patched)


def _state(samples: Sequence[Sample], stock: str, patched: str) -> SampledPairs:
    by_side = {
        side: [sample for sample in samples if sample.candidate_id == side]
        for side in (stock, patched)
    }
    sampled = SampledPairs(pairs=pairs(by_side[patched], by_side[stock]), samples=tuple(samples))
    for side, side_samples in by_side.items():
        latest = side_samples[-MOST_REFUSED:]
        if len(latest) == MOST_REFUSED and not any(sample.valid for sample in latest):
            disturbed = any(sample.disturbed for sample in latest)
            return SampledPairs(
                pairs=sampled.pairs, samples=sampled.samples, refused=side, disturbed=disturbed
            )
    return sampled
