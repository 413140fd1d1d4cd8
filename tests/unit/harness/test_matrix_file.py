"""The repository's own matrix.yaml and its schema."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from goldens import assert_golden
from shipped import MATRIX

from dsharness.errors import MatrixError
from dsharness.matrix import load_matrix
from dsharness.matrix.loader import schema_text
from dsharness.matrix.row_text import row_cells, row_text
from dsharness.matrix.series_graph import chains, known_releases
from dsharness.model import Matrix, Outcome
from dsharness.yaml_files.shape import allowed_keys

ROOT = Path(__file__).resolve().parents[3]
ROWS = {row.id: row for row in MATRIX.rows}

# system, FreeIPA, 389-ds and verdict, as published
PUBLISHED = {
    ("Fedora 34", "4.9.6", "2.0.15", "fast"),
    ("Fedora 35", "4.9.7", "2.0.11", "fast"),
    ("Fedora 35", "4.9.8", "2.0.15", "fast"),
    ("Fedora 35", "4.9.10", "2.0.17", "slow"),
    ("Fedora 36", "4.9.9", "2.1.1", "fast"),
    ("AlmaLinux 8", "4.9.9", "2.1.1", "fast"),
    ("Rocky Linux 8", "4.9.10", "1.4.3.34", "fast"),
    ("Fedora 37", "4.9.10", "2.2.1", "fast"),
    ("Fedora 37", "4.9.9", "2.1.1", "fast"),
    ("Fedora 35", "4.9.11", "2.0.16", "fast"),
}


def test_has_the_ten_published_rows_and_no_other_verdict():
    found = {
        (
            str(row.os),
            row.versions.get("freeipa") or row.published.versions["freeipa"],
            row.versions.get("389-ds"),
            row.published.verdict,
        )
        for row in MATRIX.rows
        if row.published
    }
    assert found == PUBLISHED


@pytest.mark.parametrize("row_id", ["almalinux-8-2.1.1", "rocky-8-1.4.3.34", "fedora-35-2.0.16"])
def test_a_doubtful_published_row_says_so(row_id):
    assert ROWS[row_id].published.note


def test_the_default_needs_no_registry():
    series = next(each for each in MATRIX.series if each.id == MATRIX.defaults.series)
    assert chains(series) == (("debian-11", "debian-12", "debian-13", "debian-sid"),)
    assert {ROWS[name].base.kind for name in series.rows} == {"bootstrap"}


def test_the_default_loads_differ_in_users_only():
    loads = {load.id: load for load in MATRIX.workloads}
    many, one = (loads[name] for name in MATRIX.defaults.workloads)
    assert (many.distinct_users, many.order) == (1000, "random")
    assert (one.distinct_users, one.order) == (1, "repeat")
    assert many.model_dump(exclude={"id", "title", "distinct_users", "order"}) == one.model_dump(
        exclude={"id", "title", "distinct_users", "order"}
    )


def test_along_every_line_the_versions_rise():
    for series in MATRIX.series:
        for line in chains(series):
            versions = [ROWS[name].versions.get("389-ds") for name in line]
            known = [tuple(int(n) for n in v.split(".")) for v in versions if v]
            assert known == sorted(known), series.id


def test_no_line_leads_from_a_slow_published_row_to_a_fast_one():
    for series in MATRIX.series:
        for line in chains(series):
            told = [ROWS[name].published for name in line]
            verdicts = [published.verdict for published in told if published]
            assert verdicts == sorted(verdicts, key=[Outcome.FAST, Outcome.SLOW].index), series.id


def test_published_versions_are_tagged_releases():
    tags = {release.version for release in known_releases()[1]}
    unknown = {row.id for row in MATRIX.rows if row.published} - {
        row.id for row in MATRIX.rows if row.versions.get("389-ds") in tags
    }
    assert unknown == {"rocky-8-1.4.3.34"}  # upstream has no such tag; the row's note says so


def test_the_committed_schema_is_current():
    committed = (ROOT / "matrix.schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(), "run: dsbisect matrix schema --output matrix.schema.json"


def test_the_file_names_its_schema_to_editors():
    first = (ROOT / "matrix.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=matrix.schema.json"


def test_the_schema_forbids_unknown_keys_everywhere():
    schema = json.loads(schema_text())
    kinds = [schema, *schema["$defs"].values()]
    closed = [kind for kind in kinds if kind.get("type") == "object"]
    assert closed
    assert all(kind["additionalProperties"] is False for kind in closed)


@pytest.mark.parametrize(
    ("location", "key"),
    [
        ((), "rows"),
        (("defaults",), "settings"),
        (("rows", 0, "os"), "version"),
        (("rows", 3, "base", "bootstrap"), "mirror"),
        (("rows", 3, "packages", "koji"), "nvr"),
        (("rows", 3, "published"), "verdict"),
    ],
)
def test_knows_the_keys_of_every_place(location, key):
    assert key in allowed_keys(Matrix, location)


def test_free_keys_have_no_list():
    assert allowed_keys(Matrix, ("rows", 0, "pins")) == ()


def test_a_line_says_what_a_row_is():
    assert_golden("matrix/rows.txt", "".join(f"{row_cells(row)}\n" for row in MATRIX.rows))


def test_one_row_is_told_in_full():
    assert_golden("matrix/row.txt", row_text(MATRIX, ROWS["fedora-35-2.0.16"]))
    assert_golden("matrix/aldpro.txt", row_text(MATRIX, ROWS["astra-1.7-aldpro-2.4.0"]))


def test_a_character_that_no_matrix_has_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text("version: 1\nrows: []\ndefaults: a\x00b\n", encoding="utf-8")
    with pytest.raises(MatrixError, match=r"matrix\.yaml:3: .*U\+0000"):
        load_matrix(path)


def test_a_pipe_is_no_matrix_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "matrix.yaml")
    with pytest.raises(MatrixError, match="not a regular file"):
        load_matrix(tmp_path / "matrix.yaml")
