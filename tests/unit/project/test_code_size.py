"""The measures of the project count what they say they count."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.code_size import bound_names, is_unclear, spells_question, tables


def test_names_that_hold_a_value_are_counted_once_for_each_binding() -> None:
    text = "def f(self, found, *, row=1):\n    for each in [x for x in found]: row = each.at\n"
    assert sorted(bound_names(text)) == ["each", "found", "row", "row", "x"]
    assert {name for name in bound_names(text) if is_unclear(name)} == {"each", "found"}


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("bisect/dsbisect/cli/measure.py", True),
        ("bisect/dsbisect/cli/clean.py", False),
        ("bisect/dsbisect/search_options.py", True),
        ("bisect/dsbisect/studies.py", True),
        ("bisect/dsbisect/outbox.py", False),
        ("harness/dsharness/process_options.py", False),
    ],
)
def test_a_module_spells_a_question_or_does_not(path: str, counts: bool) -> None:
    assert spells_question(Path(path)) is counts


def test_tables_of_a_database_are_not_those_of_a_terminal() -> None:
    defined = 'RUNS = Table(\n    "runs",\n)\n'
    assert tables(f"from sqlalchemy import Table\n{defined}") == 1
    assert tables(f"from rich.table import Table\n{defined}") == 0
