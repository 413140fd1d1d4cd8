"""What products add to a report: facts that they show, and explainers, as their data say."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from dsharness.model import Facts
from dsharness.products import product, product_ids
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.explainers.explainer import Explainer, FactColumn, FactText
from dsresults.explainers.password_explainer import STORED_PASSWORD

EXPLAINERS = {"stored-password": STORED_PASSWORD}


def shown_fact(heading: str, fact: str) -> Explainer:
    """Show a fact as the server tells it."""

    def read(facts: Facts) -> FactText | None:
        return FactText(main=str(facts[fact])) if fact in facts else None

    return Explainer(columns=(FactColumn(heading=heading, read=read),))


def explainers_of(products: Iterable[str | None]) -> tuple[Explainer, ...]:
    """Return those of the products; of an unknown one all, since each knows its facts by name."""
    names = (product_ids() if product is None else (product,) for product in products)
    explainers = dict[str, Explainer]()
    for name in dict.fromkeys(chain.from_iterable(names)):
        of = product(name)
        explainers |= {explainer: EXPLAINERS[explainer] for explainer in of.explainers}
        explainers |= {fact: shown_fact(heading, fact) for fact, heading in of.facts.items()}
    return tuple(explainers.values())


def columns_of(products: Iterable[str | None]) -> tuple[FactColumn, ...]:
    return tuple(column for explainer in explainers_of(products) for column in explainer.columns)


def shown_columns(comparison: ComparisonTable) -> tuple[FactColumn, ...]:
    """Return the columns of facts that a comparison shows."""
    products = [candidate.product for candidate in comparison.candidates]
    return tuple(column for column in columns_of(products) if _shown(comparison, column))


def _shown(comparison: ComparisonTable, column: FactColumn) -> bool:
    texts = {text for name in comparison.line for text in read_back(comparison, column, name)}
    return column.concerns(comparison.columns) and len(texts) > (0 if column.costs else 1)


def read_back(
    comparison: ComparisonTable, column: FactColumn, candidate: str
) -> tuple[FactText, ...]:
    """Return what a candidate said under the loads, each text once."""
    observed = (column_there.of(candidate) for column_there in comparison.columns)
    texts = (
        column.read(observed_candidate.facts)
        for observed_candidate in observed
        if observed_candidate is not None
    )
    return tuple(dict.fromkeys(text for text in texts if text is not None))


__all__ = [
    "EXPLAINERS",
    "Explainer",
    "FactColumn",
    "FactText",
    "columns_of",
    "explainers_of",
    "read_back",
    "shown_columns",
]
