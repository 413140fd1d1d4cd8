"""The explainers there are, in a literal dict; a product's data says which are its own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from dsharness.model import DATABASE, WORKER_THREADS, Facts
from dsharness.products import product
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.explainers.explainer import Explainer, FactColumn, FactText
from dsresults.explainers.password_explainer import STORED_PASSWORD


def told(heading: str, fact: str) -> Explainer:
    """Show a fact as the server tells it."""

    def read(facts: Facts) -> FactText | None:
        return FactText(main=str(facts[fact])) if fact in facts else None

    return Explainer(columns=(FactColumn(heading=heading, read=read),))


EXPLAINERS = {
    "stored-password": STORED_PASSWORD,
    "database": told("database library", DATABASE),
    "worker-threads": told("number of worker threads", WORKER_THREADS),
}


def explainers_of(products: Iterable[str | None]) -> tuple[Explainer, ...]:
    """Return those of the products; of an unknown one all, since each knows its facts by name."""
    names = (EXPLAINERS if each is None else product(each).explainers for each in products)
    return tuple(EXPLAINERS[name] for name in dict.fromkeys(chain.from_iterable(names)))


def columns_of(products: Iterable[str | None]) -> tuple[FactColumn, ...]:
    return tuple(column for each in explainers_of(products) for column in each.columns)


def shown_columns(comparison: ComparisonTable) -> tuple[FactColumn, ...]:
    """Return the columns of facts that a comparison shows."""
    products = [candidate.product for candidate in comparison.candidates]
    return tuple(column for column in columns_of(products) if _shown(comparison, column))


def _shown(comparison: ComparisonTable, column: FactColumn) -> bool:
    known = {text for name in comparison.line for text in read_back(comparison, column, name)}
    return column.concerns(comparison.columns) and len(known) > (0 if column.costs else 1)


def read_back(
    comparison: ComparisonTable, column: FactColumn, candidate: str
) -> tuple[FactText, ...]:
    """Return what a candidate said under the loads, each text once."""
    observed = (each.of(candidate) for each in comparison.columns)
    texts = (column.read(one.facts) for one in observed if one is not None)
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
