"""What each product adds to a report: its facts, and the reasons that need to know them."""

from __future__ import annotations

import pytest
from reported import DEBIAN, reported

from dsharness.model import Facts
from dsharness.model.stored_password import StoredPassword
from dsharness.products import product, product_ids
from dsresults.compare.comparison_table import Candidate, Column, ComparisonTable, Observed
from dsresults.explainers import EXPLAINERS, columns_of, shown_columns
from dsresults.explainers.password_explainer import hashing_of, spelled
from dsresults.reasons.explanation import explain
from dsresults.reasons.reason import places


@pytest.mark.parametrize("name", product_ids())
def test_a_products_explainers_exist_and_its_data_can_be_read(name: str) -> None:
    assert set(product(name).explainers) <= set(EXPLAINERS)
    headings = [column.heading for column in columns_of([name])]
    assert headings[len(headings) - len(product(name).facts) :] == [*product(name).facts.values()]
    assert set(hashing_of(name).libraries) <= set(product(name).libraries)


def test_an_unknown_product_may_have_any_facts() -> None:
    headings = [column.heading for column in columns_of([None])]
    facts = {heading for name in product_ids() for heading in product(name).facts.values()}
    assert headings[0] == "stored password"
    assert sorted(headings[1:]) == sorted(facts)  # each once


def comparison(product: str, before: Facts, after: Facts) -> ComparisonTable:
    """The boundary of the Debian rows, with these facts on its two sides."""
    base = reported(DEBIAN, ("bind-random",)).sections[0].comparison
    boundary = base.columns[0].boundary
    assert boundary is not None

    def observed(one: Observed) -> Observed:
        late = base.line.index(one.candidate) > base.line.index(boundary.before or "")
        return one.model_copy(update={"facts": after if late else before})

    def candidate(one: Candidate) -> Candidate:
        return one.model_copy(update={"product": product, "product_title": "BIND"})

    def column(one: Column) -> Column:
        return one.model_copy(update={"observed": tuple(map(observed, one.observed))})

    return base.model_copy(
        update={
            "candidates": tuple(map(candidate, base.candidates)),
            "columns": tuple(map(column, base.columns)),
        }
    )


def text_of(comparison: ComparisonTable) -> str:
    """What is said of the boundary."""
    return next(each.text for each in explain(comparison) if "may be what changed" in each.text)


def test_bind_shows_its_worker_threads_where_they_differ() -> None:
    """A product that stores no password."""
    same = comparison("bind", {"worker-threads": 1}, {"worker-threads": 1})
    assert shown_columns(same) == ()
    assert text_of(same).startswith("The number of worker threads is the same on both sides. ")
    changed = comparison("bind", {"worker-threads": 1}, {"worker-threads": 4})
    assert [column.heading for column in shown_columns(changed)] == ["number of worker threads"]
    said = text_of(changed)
    assert said.startswith("The cause may be what changed: ")
    assert said.endswith(", the number of worker threads, or BIND itself.")
    assert not any("password" in each.text for each in explain(changed))


def test_a_database_that_changed_may_be_the_cause() -> None:
    stored = StoredPassword(scheme="SSHA512").facts
    bdb, mdb = ({**stored, "database": each} for each in ("bdb", "mdb"))
    headings = [column.heading for column in shown_columns(comparison("389-ds", bdb, mdb))]
    assert headings == ["stored password", "database library"]
    assert "the database library, or" in text_of(comparison("389-ds", bdb, mdb))
    said = text_of(comparison("389-ds", bdb, bdb))
    assert said.startswith(
        "The stored password and the database library are the same on both sides. "
    )


def test_a_fact_that_is_not_told_is_not_shown() -> None:
    assert {column.read({}) for column in columns_of([None])} == {None}


def test_a_stored_password_in_words() -> None:
    stored = StoredPassword(scheme="PBKDF2_SHA256", rounds=2048)
    assert str(spelled(stored)) == "PBKDF2_SHA256, 2,048 rounds"
    argon2 = StoredPassword(scheme="ARGON2", rounds=3, memory_kib=4096)
    assert str(spelled(argon2)) == "ARGON2, 3 rounds over 4,096 KiB"
    assert str(spelled(StoredPassword(scheme="SSHA512"))) == "SSHA512"


@pytest.mark.parametrize(
    ("version", "entries"),
    [
        ("3.44", None),
        ("2:3.61-1", 1),
        ("3.71.0-1.fc35", 2),
        ("2:3.87.1-1", 3),
        ("3.90.0-3.el8", 150),
        ("2:3.110-1", 150),
        ("", None),
    ],
)
def test_results_kept_by_nss(version, entries):
    assert hashing_of("389-ds").libraries["nss"].kept(version) == entries


def test_a_server_that_verifies_the_same_password_is_judged_by_the_round() -> None:
    stored: Facts = {"password-scheme": "PBKDF2-SHA512", "password-rounds": 10_000}
    (place, *_) = places(comparison("389-ds", stored, stored))
    (reason,) = EXPLAINERS["stored-password"].of_server(place)
    assert "Both verify PBKDF2-SHA512, 10,000 rounds: with bind-random" in reason.text
    assert reason.text.endswith("dearer.")
    for other in ({**stored, "password-rounds": 2048}, {"password-scheme": "PBKDF2-SHA512"}):
        (place, *_) = places(comparison("389-ds", stored, other))
        assert list(EXPLAINERS["stored-password"].of_server(place)) == []
