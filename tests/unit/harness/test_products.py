"""What the lab knows of each program, as data that is checked when it is read."""

from __future__ import annotations

import pytest

from dsharness.errors import MatrixError
from dsharness.model.stored_password import StoredPassword
from dsharness.products import build_needs_file, known_changes, product, product_ids, source_facts
from dsharness.products.catalog import product_of_system
from dsharness.products.product import KnownChange, numbers
from dsharness.systems import SYSTEMS

MINIMAL = """title: Toy
systems: [toy]
deb: {server: toy-server, source: toy}
"""
SOURCE = """must_have: [main.c]
release_tags: toy-*
files: {docs/*: docs, "*.md": docs, docs/code/*: server}
hot_paths: {core/*: 2.0}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "product.yaml").write_text(MINIMAL)
    (tmp_path / "toy" / "source.yaml").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize("name", product_ids())
def test_what_the_lab_ships_is_right(name):
    assert product(name).title
    source_facts(name)
    known_changes(name)
    build_needs_file(name)


def test_every_driver_serves_one_product():
    served = [system for name in product_ids() for system in product(name).systems]
    assert len(served) == len(set(served))
    assert {product_of_system(system) for system in SYSTEMS} <= set(product_ids())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title: Toy", "titel: Toy", "product.yaml:1: titel: value 'Toy': unknown key"),
        ("systems: [toy]", "systems: []", "product.yaml:2: systems"),
        ("server: toy-server, ", "", "product.yaml:3: deb.server: missing"),
        ("systems: [toy]", "systems: [3.1]", "product.yaml:2: systems[0]: value '3.1'"),
    ],
)
def test_a_wrong_value_is_named_with_file_and_line(folder, old, new, said):
    (folder / "toy" / "product.yaml").write_text(MINIMAL.replace(old, new))
    with pytest.raises(MatrixError) as caught:
        product("toy", folder)
    assert said in str(caught.value)
    assert "docs/drivers.md" in str(caught.value)


def test_a_pattern_that_is_no_regular_expression_is_refused(folder):
    (folder / "toy" / "source.yaml").write_text(SOURCE + "unread: {docs/: '('}\n")
    with pytest.raises(MatrixError, match=r"source\.yaml:5: unread\.docs/.*regular expression"):
        source_facts("toy", folder)


def test_an_unknown_product_is_refused_with_the_nearest(folder):
    with pytest.raises(MatrixError, match="Perhaps you meant 'toy'"):
        product("toi", folder)


def test_the_first_pattern_that_fits_says_what_a_file_is(folder):
    facts = source_facts("toy", folder)
    assert facts is not None
    assert facts.kind_of("docs/code/a.c") == "docs"
    assert facts.kinds_of(["a.md", "b/c.md", "core/a.c"]) == ("docs", "server")


def test_what_is_not_known_is_nothing(folder):
    assert known_changes("toy", folder).changes == ()
    assert build_needs_file("toy", folder) is None


def test_the_version_is_that_of_the_servers_package(folder):
    toy = product("toy", folder)
    assert toy.version({"toy-server": "1.2-3", "libc6": "2"}) == "1.2-3"
    assert toy.version({"libc6": "2"}) is None


def test_a_change_without_facts_asks_for_versions_only():
    change = KnownChange(issue=1, what="faster", first=("2.1.0",))
    assert change.fits({}, {})
    assert change.is_in((2, 1, 3))
    assert not change.is_in((2, 0, 9))


KNOWN = known_changes("389-ds")

C = StoredPassword(scheme="PBKDF2_SHA256", rounds=2048)
RUST = StoredPassword(scheme="PBKDF2-SHA512", rounds=10_000)
DEAR = StoredPassword(scheme="PBKDF2-SHA512", rounds=100_000)


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("2:3.61-1+deb11u3", (3, 61)),
        ("2.3.1+dfsg1-1+deb12u1", (2, 3, 1)),
        ("2.0.17-1.fc35", (2, 0, 17)),
        ("1.4.4.11", (1, 4, 4, 11)),
        ("unknown", ()),
    ],
)
def test_the_upstream_part_of_a_version(version, found):
    assert numbers(version) == found


@pytest.mark.parametrize(
    ("before", "after", "issues"),
    [
        (("2.0.16", C), ("2.0.17", RUST), [5356]),
        (("2.1.5-1.fc36", C), ("2.1.6", RUST), [5356]),
        (("2.2.2", C), ("2.2.3", RUST), [5356]),
        (("2.2.2", C), ("2.4.0", RUST), [5356]),
        (("2.0.15", C), ("2.0.16", RUST), []),  # stored otherwise, but not by that change
        (("2.0.16", C), ("2.0.17", C), []),  # the change lies here, but nothing shows it
        (("2.6.0", RUST), ("2.6.1", DEAR), [6269]),
        (("3.0.5", RUST), ("3.0.6", DEAR), [6269]),
        (("3.1.1", RUST), ("3.1.2", DEAR), [6269]),
        (("2.3.1", RUST), ("3.1.2", DEAR), [6269]),
        (("2.6.0", RUST), ("2.7.0", DEAR), [6269]),
        (("2.6.1", RUST), ("3.1.2", DEAR), []),  # it was there before
        (("1.4.4.11", C), ("3.1.2", DEAR), [5356, 6269]),
        (("2.0.17", RUST), ("2.0.16", C), []),  # the other way round
        (("", C), ("2.0.17", RUST), []),
    ],
)
def test_only_what_lies_between_and_fits_is_cited(before, after, issues):
    sides = [(version, stored.facts) for version, stored in (before, after)]
    assert [change.issue for change in KNOWN.between(*sides)] == issues


@pytest.mark.parametrize("change", KNOWN.changes)
def test_a_change_begins_with_its_tags(change):
    for tag in map(numbers, change.first):
        assert change.is_in(tag)
        if tag[-1]:
            assert not change.is_in((*tag[:-1], tag[-1] - 1))
