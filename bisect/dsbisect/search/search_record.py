"""Searches by name, and as a campaign records them: logs replay with the search they had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dsbisect.search.bayes.bayes_search import Bayes
from dsbisect.search.bayes.belief import Certainty
from dsbisect.search.bayes.prior import Belief
from dsbisect.search.bayes.step_cost import Budget, Costs
from dsbisect.search.plain.halving_search import Halving
from dsbisect.search.question import Search
from dsharness.errors import StoreError
from dsharness.model import Campaign

_NEVER = Budget().seconds  # JSON has no infinity
PLAIN = "plain"
STATISTICAL = "statistical"


def recorded(search: Search) -> dict[str, Any]:
    """Everything needed to repeat this search's decisions."""
    if isinstance(search, Bayes):
        costs = asdict(search.costs) | {"ready": sorted(search.costs.ready)}
        budget = {name: value for name, value in asdict(search.budget).items() if value != _NEVER}
        return {
            "name": STATISTICAL,
            "belief": asdict(search.belief) | {"tails": list(search.belief.tails)},
            "certainty": asdict(search.certainty),
            "costs": costs,
            "budget": budget,
            "prior": dict(search.prior),
            "survey_up_to": search.survey_up_to,
        }
    return {"name": PLAIN}


def as_recorded(search: Search, campaign: Campaign) -> Search:
    """To continue as it began: with the same costs, so that a replay decides the same."""
    return search_of(campaign) if isinstance(search, Bayes) else search


def search_of(campaign: Campaign) -> Search:
    """The search that a campaign was run with; those from before there were two were plain."""
    facts: Mapping[str, Any] = campaign.environment.get("search", {})
    name = facts.get("name", PLAIN)
    if name == PLAIN:
        return Halving()
    if name != STATISTICAL:
        raise StoreError(
            f"campaign {campaign.id} was run with a search called {name!r}, unknown here",
            hint="a newer dsbisect wrote it: replay it with that one",
        )
    try:
        costs: dict[str, Any] = dict(facts["costs"])
        belief: dict[str, Any] = dict(facts["belief"])
        return Bayes(
            belief=Belief(**{**belief, "tails": tuple(belief["tails"])}),
            certainty=Certainty(**facts["certainty"]),
            costs=Costs(**{**costs, "ready": frozenset(costs["ready"])}),
            budget=Budget(**facts["budget"]),
            prior=facts["prior"],
            survey_up_to=facts["survey_up_to"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"campaign {campaign.id}: its record of the search is damaged: {error}",
            hint="use a log as `dsbisect log --json` printed it",
        ) from error
