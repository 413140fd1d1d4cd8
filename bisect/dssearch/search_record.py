"""A search as a campaign records it, and its replay: the same steps, the same answer. Pure logic.

What a search decides follows only from what was measured, so the stored samples are the log, and
replaying them proves it. Old logs replay with the search they had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from dsharness.errors import StoreError
from dsharness.model import Boundary, Campaign, Sample, SearchChoice, Value
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty
from dssearch.bayes.prior import Belief, Budget, Costs
from dssearch.planner import TurnEnd, run_search
from dssearch.question import History, Measure, Question, Search

STATISTICAL = "statistical"


class BayesRecord(Value):
    """What it takes to decide again what a statistical search decided."""

    belief: Belief
    certainty: Certainty
    costs: Costs
    budget: Budget
    prior: Mapping[str, float]
    survey_up_to: int

    @property
    def search(self) -> Search:
        return Bayes(**dict(self))

    @property
    def inputs(self) -> tuple[JsonValue, ...]:
        """Without what was ready or suspected: a run that continues takes that from the record."""
        return (self.model_dump(mode="json", exclude={"costs", "prior"}),)


def choice_of(search: Search) -> SearchChoice:
    """Return a search as a campaign keeps it."""
    if not search.looks:
        return SearchChoice()
    return SearchChoice(name=STATISTICAL, options=record_of(search).model_dump(mode="json"))


def inputs_of(search: Search) -> tuple[JsonValue, ...]:
    """Return what of a search must be the same for old samples to count."""
    return record_of(search).inputs if search.looks else ()


def record_of(search: Search) -> BayesRecord:
    if not isinstance(search, Bayes):
        raise TypeError(f"{type(search).__name__} cannot be recorded")
    return BayesRecord.model_validate(search, from_attributes=True)


def search_of(campaign: Campaign) -> Search:
    """Return the search that a campaign was run with."""
    name = campaign.search.name
    if name != STATISTICAL:
        raise StoreError(
            f"campaign {campaign.id} was run with a search called {name!r}, unknown here",
            hint="another version of dsbisect wrote it: replay it with that one",
        )
    try:
        return BayesRecord.model_validate(campaign.search.options).search
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoreError(
            f"campaign {campaign.id}: its record of the search is damaged: {where}: {first['msg']}",
            hint="use a log as `dsbisect show steps --json` printed it",
        ) from error


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The steps a search takes over stored samples, and where that leads."""

    campaign: Campaign
    steps: tuple[tuple[Measure, tuple[Sample, ...]], ...]
    boundary: Boundary | None  # None: the log ends before the answer
    next_turn: Measure | None = None  # what would be measured next

    @property
    def agrees(self) -> bool | None:
        """Whether the stored answer was found again; None if one of the two is missing."""
        if self.boundary is None or self.campaign.boundary is None:
            return None
        return self.boundary == self.campaign.boundary


def question_of(campaign: Campaign) -> Question:
    """Return the campaign's question."""
    line = campaign.line or (campaign.boundary.line if campaign.boundary else ())
    return Question(
        series_id=campaign.series_id,
        line=line,
        workload_id=campaign.workload_id,
        settings_id=campaign.settings_id,
        metric=campaign.metric,
    )


def replay(campaign: Campaign, samples: Iterable[Sample], search: Search) -> Replay:
    """Let a search go over a campaign's samples as if they were taken now."""
    log = _Log(
        samples={(sample.turn, sample.candidate_id): sample for sample in samples},
        broken=dict(campaign.boundary.unmeasured if campaign.boundary else {}),
    )
    start = History(unmeasurable=campaign.unmeasured)
    end = run_search(question_of(campaign), search, log, start)
    return Replay(
        campaign=campaign, steps=tuple(log.steps), boundary=end.boundary, next_turn=end.next_turn
    )


@dataclass(kw_only=True)
class _Log:
    """A ``TurnSource``: what was stored."""

    samples: Mapping[tuple[int, str], Sample]
    broken: Mapping[str, str]  # what turned out not to be measurable
    steps: list[tuple[Measure, tuple[Sample, ...]]] = field(default_factory=list)

    def turn(self, step: Measure) -> TurnEnd | None:
        turn_samples = [self.samples.get((step.turn, candidate)) for candidate in step.candidates]
        usable = tuple(sample for sample in turn_samples if sample is not None)
        refused = self._refused(step)
        if refused is not None:
            # the number of a turn that came to nothing was given again, to another one
            if any(
                turn == step.turn and name not in step.candidates for turn, name in self.samples
            ):
                usable = ()
        elif len(usable) < len(turn_samples):
            return None
        self.steps.append((step, usable))
        return TurnEnd(
            samples=usable, unmeasurable={refused: self.broken[refused]} if refused else {}
        )

    def _refused(self, step: Measure) -> str | None:
        """Return the candidate of a turn that turned out not to be measurable."""
        missing = (name for name in step.candidates if (step.turn, name) not in self.samples)
        return next((name for name in missing if name in self.broken), None)
