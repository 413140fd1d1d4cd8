"""Stores that earlier versions left stay readable: one of each schema, made by the code of then."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from old_stores import STORES, UNREADABLE
from reported import DEBIAN, matrix_of

from dsharness.errors import StoreError
from dsresults.report import render_html, render_markdown, report_data
from dsresults.store import Store
from dsresults.store.store import SCRIPTS

KEPT = Path(__file__).parents[2] / "golden/stores"


def restored(schema: str, folder: Path) -> Path:
    place = folder / "old.db"
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript((KEPT / f"schema-{schema}.sql").read_text("utf-8"))
    return place


@pytest.mark.parametrize("schema", STORES)
def test_a_store_of_each_schema_is_read_and_reported(tmp_path, schema):
    place = restored(schema, tmp_path)
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT version_num FROM dsbisect_schema").fetchone() == (schema,)
    with Store.open(place, create=False) as store:
        (campaign,) = store.campaigns()
        samples, images = store.measured_in([campaign])
        history = store.samples(candidate_id="debian-13")
    assert campaign.boundary is not None
    assert (campaign.boundary.before, campaign.boundary.after) == ("debian-11", "debian-12")
    assert len(samples) > 4
    assert history
    data = report_data(matrix_of(DEBIAN, ("bind-one",)), [campaign], samples, images)
    assert "With bind-one, debian-12 is 2" in render_markdown(data)
    assert "Slow from debian-12 on" in render_html(data)


def test_each_schema_has_a_store_but_the_newest_that_this_version_writes():
    known = sorted(path.stem[1:5] for path in (SCRIPTS / "versions").glob("v*.py"))
    assert sorted(path.stem.removeprefix("schema-") for path in KEPT.glob("*.sql")) == known
    assert ["0001", *STORES] == known


def test_a_store_from_before_its_columns_were_renamed_is_one_clear_error(tmp_path):
    place = restored("0001", tmp_path)
    with pytest.raises(StoreError, match="from before 2026-11-22") as caught:
        Store.open(place, create=False)
    assert f"commit {UNREADABLE} still reads it" in (caught.value.hint or "")
