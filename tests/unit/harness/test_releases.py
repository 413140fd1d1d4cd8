from __future__ import annotations

import pytest

from dsharness.errors import MatrixError
from dsharness.matrix.series_graph import (
    chains,
    find_cycle,
    graph_of,
    known_releases,
    load_releases,
    parents_of,
)
from dsharness.products.product import ReleaseFacts

HEADER = "version,date,commit,scheme,rounds\n"
FACTS = ReleaseFacts(shown=("{scheme}", "{rounds:,} rounds"))
SERIES, RELEASES = known_releases()
BY_VERSION = {release.version: release for release in RELEASES}


@pytest.mark.parametrize(
    ("version", "parent"),
    [
        ("2.0.17", "2.0.16"),  # in its branch
        ("1.4.3-32", "1.4.3.30"),
        ("2.1.0", "2.0.14"),  # forks from the branch before
        ("2.2.0", "2.1.0"),  # 2.1.1 was tagged on the same day
        ("2.5.1", "2.4.5"),
        ("3.0.1", "2.4.5"),  # 2.5 to 2.9 had no tag yet
        ("3.3.0", "3.2.1"),
    ],
)
def test_a_tag_follows_its_branch_or_the_branch_it_forked_from(version, parent):
    assert parents_of(RELEASES)[version] == (parent,)


@pytest.mark.parametrize("root", ["1.4.3.24", "1.4.4.14", "2.0.0"])
def test_a_branch_without_older_tags_is_a_root(root):
    assert parents_of(RELEASES)[root] == ()


@pytest.mark.parametrize(
    ("version", "branch"),
    [("1.4.3-32", "1.4.3"), ("1.4.4.20", "1.4.4"), ("2.0.0.0", "2.0"), ("3.1.2", "3.1")],
)
def test_the_branch_is_in_the_version(version, branch):
    assert BY_VERSION[version].branch == branch


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2.0.16", "2.0.17"),
        ("2.1.5", "2.1.6"),
        ("2.2.2", "2.2.3"),
        ("2.2.2", "2.3.0"),
        ("2.6.0", "2.6.1"),
        ("3.0.5", "3.0.6"),
        ("3.1.1", "3.1.2"),
        ("1.4.3.30", "1.4.3-32"),
        ("1.4.3-32", "1.4.3.35"),
    ],
)
def test_the_default_changes_where_upstream_changed_it(before, after):
    assert parents_of(RELEASES)[after] == (before,)
    assert BY_VERSION[before].shown != BY_VERSION[after].shown


def test_and_nowhere_else():
    parents = parents_of(RELEASES)
    changes = [
        version
        for version, above in parents.items()
        if above and BY_VERSION[above[0]].shown != BY_VERSION[version].shown
    ]
    assert len(changes) == 9


def test_every_tag_lies_on_a_chain():
    assert find_cycle(graph_of(SERIES)) is None
    assert {version for chain in chains(SERIES) for version in chain} == set(BY_VERSION)
    assert {release.version for release in RELEASES if release.numbers >= (2,)} >= {
        "2.0.1",
        "3.1.1",
        "3.3.0",
    }


def test_dates_never_fall_along_a_branch():
    for version, above in parents_of(RELEASES).items():
        assert all(BY_VERSION[parent].date <= BY_VERSION[version].date for parent in above)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + "2.0.1,soon,abc,X,\n", ":2: date"),
        (HEADER + "two,2020-11-03,abc,X,\n", ":2: version"),
        (HEADER + "2.0.1,2020-11-03,abc,X,,extra\n", ":2: not as many cells as columns"),
        (HEADER + "2.0.1,2020-11-03,abc\n", ":2: not as many cells as columns"),
        (HEADER + "2.0.1,2020-11-03,abc,X,\n" * 2, "more than once: 2.0.1"),
        ("version,date,commit,rounds\n2.0.1,2020-11-03,abc,9\n", ":2: no column 'scheme'"),
        ("version,scheme,rounds\n2.0.1,X,9\n", ":2: no column 'date'"),
        (HEADER, "no release"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path, text, said):
    table = tmp_path / "releases.csv"
    table.write_text(text, encoding="utf-8")
    with pytest.raises(MatrixError) as caught:
        load_releases(table, FACTS)
    assert str(table) in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"version\n\0\n"])
def test_a_table_that_is_no_text_is_refused(tmp_path, raw):
    table = tmp_path / "releases.csv"
    table.write_bytes(raw)
    with pytest.raises(MatrixError):
        load_releases(table, FACTS)


def test_what_is_shown_leaves_out_empty_columns(tmp_path):
    table = tmp_path / "releases.csv"
    table.write_text(HEADER + "2.0.1,2020-11-03,abc,X,10000\n2.0.2,2020-11-04,abd,Y,\n")
    one, other = load_releases(table, FACTS)
    assert (one.shown, other.shown) == ("X, 10,000 rounds", "Y")
    assert (one.branch, one.numbers) == ("2.0", (2, 0, 1))


@pytest.mark.parametrize("text", ["rounds", "{rounds", "{a} {b}", "{}", "{a.b}"])
def test_what_is_shown_names_one_column(text):
    with pytest.raises(ValueError, match=r"column's name"):
        ReleaseFacts(shown=(text,))


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(MatrixError, match=r"nowhere\.csv: cannot be read"):
        load_releases(tmp_path / "nowhere.csv", FACTS)
