"""Which packages moved between two looks at a row's archive, and how it is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsresults.moved_packages import PackageChange, moved_packages

NAMES = st.sampled_from(["389-ds-base", "libnss3", "libssl3", "bash", "zlib1g"])
MANIFESTS = st.dictionaries(NAMES, st.sampled_from(["1", "2", "3"]))
SERVER = "389-ds-base"


def told(before: dict[str, str], after: dict[str, str]) -> tuple[str, str]:
    found = moved_packages(before, after, server=SERVER, notable=["libnss3"])
    return str(found), found.since


@given(MANIFESTS, MANIFESTS)
def test_each_difference_is_told_once_and_nothing_else(
    before: dict[str, str], after: dict[str, str]
) -> None:
    found = moved_packages(before, after, server=SERVER, notable=["libnss3"])
    again = dict(before)
    for change in found.changes:
        assert again.pop(change.name, None) == change.before
        assert change.before != change.after
        if change.after is not None:
            again[change.name] = change.after
    assert again == after
    assert len({change.name for change in found.changes}) == len(found.changes)
    names = [change.name for change in found.changes]
    assert SERVER not in names[1:]
    assert "libnss3" not in names[2:]


@pytest.mark.parametrize(
    ("before", "after", "said", "since"),
    [
        (
            {SERVER: "3.1"}, {SERVER: "3.2"},
            "389-ds-base 3.1 → 3.2 alone", "389-ds-base 3.1 → 3.2",
        ),
        (
            {SERVER: "3.1", "libnss3": "1", "a": "1", "b": "1"},
            {SERVER: "3.2", "libnss3": "2", "b": "2", "c": "1", "d": "1"},
            "389-ds-base 3.1 → 3.2; with it libnss3 1 → 2, a 1 → nothing, b 1 → 2, and 2 more",
            "389-ds-base 3.1 → 3.2",
        ),
        (
            {SERVER: "3.1", "libnss3": "1"}, {SERVER: "3.1", "libnss3": "2"},
            "389-ds-base 3.1 as before; libnss3 1 → 2", "libnss3 1 → 2",
        ),
        ({SERVER: "3.1"}, {SERVER: "3.1"}, "389-ds-base 3.1", "389-ds-base 3.1"),
    ],
)  # fmt: skip
def test_the_server_comes_first_and_what_moved_with_it(
    before: dict[str, str], after: dict[str, str], said: str, since: str
) -> None:
    assert told(before, after) == (said, since)


def test_what_an_archive_says_controls_no_terminal() -> None:
    (change,) = moved_packages({}, {"a\x1b[31m": "1\x07"}, server=SERVER, notable=[]).changes
    assert "\x1b" not in change.name
    assert "\x07" not in str(change.after)
    assert str(PackageChange(name="a", after="1")) == "a 1 is new"
