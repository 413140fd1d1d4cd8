"""Which judge a claim has, by how it says that it is to be judged. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dsharness.products import published_claims as data
from dsresults.compare.bind_claims import (
    judge_busy,
    judge_cost_order,
    judge_first_slower,
    judge_reaches,
    judge_same_hash,
    judge_slower,
)
from dsresults.compare.bind_lines import BindFigures
from dsresults.compare.claim_outcomes import ClaimOutcome
from dsresults.compare.stored_claims import (
    StoredFigures,
    judge_keeps_old,
    judge_mixes_schemes,
    judge_sets_rounds,
)
from dsresults.compare.trial_claims import (
    CulpritFigures,
    NearestFigures,
    PortFigures,
    RatioFigures,
    ToolFigures,
    judge_ends_by_reset,
    judge_names_commit,
    judge_port_limit,
    judge_ratios,
    judge_tool_limit,
)

Figures = (
    BindFigures
    | StoredFigures
    | PortFigures
    | CulpritFigures
    | ToolFigures
    | RatioFigures
    | NearestFigures
)

JUDGES: dict[type, Callable[[Any, Any], ClaimOutcome]] = {
    data.Slower: judge_slower,
    data.FirstSlower: judge_first_slower,
    data.Busy: judge_busy,
    data.SameHash: judge_same_hash,
    data.CostOrder: judge_cost_order,
    data.Reaches: judge_reaches,
    data.KeepsOld: judge_keeps_old,
    data.MixesSchemes: judge_mixes_schemes,
    data.SetsRounds: judge_sets_rounds,
    data.PortLimit: judge_port_limit,
    data.EndsByReset: judge_ends_by_reset,
    data.NamesCommit: judge_names_commit,
    data.ToolLimit: judge_tool_limit,
    data.Ratios: judge_ratios,
}


def judge(judged: data.Judged, figures: Sequence[Figures]) -> ClaimOutcome:
    """By the figures of all of a claim's measurements."""
    binds = [figure_set for figure_set in figures if isinstance(figure_set, BindFigures)]
    known_figures = BindFigures.merged(binds) if binds else figures[0]
    return JUDGES[type(judged)](judged, known_figures)
