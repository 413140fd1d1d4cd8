from __future__ import annotations

import pytest

from dsharness.products import known_changes
from dsharness.products.known_changes import numbers
from dsharness.systems.ldap.stored_password import StoredPassword

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
