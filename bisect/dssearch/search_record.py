"""Searches as what a campaign records: old logs replay with the search they had."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from dsharness.errors import StoreError
from dsharness.model import Campaign, SearchChoice, Value
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty
from dssearch.bayes.prior import Belief, Budget, Costs
from dssearch.question import Search

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


def choice_of(search: Search) -> SearchChoice:
    """A search as a campaign keeps it."""
    if not search.looks:
        return SearchChoice()
    return SearchChoice(name=STATISTICAL, options=record_of(search).model_dump(mode="json"))


def inputs_of(search: Search) -> tuple[JsonValue, ...]:
    """What of a search must be the same for old samples to count."""
    return record_of(search).inputs if search.looks else ()


def record_of(search: Search) -> BayesRecord:
    if not isinstance(search, Bayes):
        raise TypeError(f"{type(search).__name__} cannot be recorded")
    return BayesRecord(
        belief=search.belief,
        certainty=search.certainty,
        costs=search.costs,
        budget=search.budget,
        prior=search.prior,
        survey_up_to=search.survey_up_to,
    )


def search_of(campaign: Campaign) -> Search:
    """The search that a campaign was run with."""
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
            hint="use a log as `dsbisect log --json` printed it",
        ) from error
