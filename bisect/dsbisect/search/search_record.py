"""Searches as what a campaign records: old logs replay with the search they had."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from dsbisect.search.bayes.bayes_search import Bayes
from dsbisect.search.bayes.belief import Certainty
from dsbisect.search.bayes.prior import Belief
from dsbisect.search.bayes.step_cost import Budget, Costs
from dsbisect.search.plain.halving_search import Halving
from dsbisect.search.question import Search
from dsharness.errors import StoreError
from dsharness.model import Campaign, SearchChoice, Value


class PlainRecord(Value):
    """The plain search has nothing that could differ."""

    @property
    def search(self) -> Search:
        return Halving()

    @property
    def inputs(self) -> tuple[JsonValue, ...]:
        """What must be the same for another run to continue with its samples."""
        return ()


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
        return Bayes(
            belief=self.belief,
            certainty=self.certainty,
            costs=self.costs,
            budget=self.budget,
            prior=self.prior,
            survey_up_to=self.survey_up_to,
        )

    @property
    def inputs(self) -> tuple[JsonValue, ...]:
        """Without what was ready or suspected: a run that continues takes that from the record."""
        return (self.model_dump(mode="json", exclude={"costs", "prior"}),)


SearchRecord = PlainRecord | BayesRecord
_RECORDS: dict[str, type[SearchRecord]] = {"plain": PlainRecord, "statistical": BayesRecord}


def choice_of(search: Search) -> SearchChoice:
    """A search as a campaign keeps it."""
    record = record_of(search)
    name = next(name for name, kind in _RECORDS.items() if isinstance(record, kind))
    return SearchChoice(name=name, options=record.model_dump(mode="json"))


def record_of(search: Search) -> SearchRecord:
    if not isinstance(search, Bayes):
        return PlainRecord()
    return BayesRecord(
        belief=search.belief,
        certainty=search.certainty,
        costs=search.costs,
        budget=search.budget,
        prior=search.prior,
        survey_up_to=search.survey_up_to,
    )


def as_recorded(search: Search, campaign: Campaign) -> Search:
    """To continue as it began: with the same costs, so that a replay decides the same."""
    return search_of(campaign) if isinstance(search, Bayes) else search


def search_of(campaign: Campaign) -> Search:
    """The search that a campaign was run with."""
    name = campaign.search.name
    if name not in _RECORDS:
        raise StoreError(
            f"campaign {campaign.id} was run with a search called {name!r}, unknown here",
            hint="a newer dsbisect wrote it: replay it with that one",
        )
    try:
        return _RECORDS[name].model_validate(campaign.search.options).search
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoreError(
            f"campaign {campaign.id}: its record of the search is damaged: {where}: {first['msg']}",
            hint="use a log as `dsbisect log --json` printed it",
        ) from error
