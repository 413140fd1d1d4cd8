"""What differs between two states of a directory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dsproducts.dirsrv.validation.population import Dump, differences, passwords_in

WORDS = st.text("abc", min_size=1, max_size=3)
ENTRIES = st.dictionaries(WORDS, st.lists(WORDS, min_size=1, max_size=3).map(sorted).map(tuple))
DUMPS = st.dictionaries(WORDS, ENTRIES, max_size=4)


@given(DUMPS)
def test_a_dump_does_not_differ_from_itself(dump: Dump) -> None:
    assert list(differences(dump, dump)) == []


@given(DUMPS, DUMPS)
def test_equal_dumps_are_those_without_differences(one: Dump, other: Dump) -> None:
    assert (not list(differences(one, other))) == (one == other)
    assert len(list(differences(one, other))) == len(list(differences(other, one)))


def test_a_line_names_entry_attribute_and_both_values() -> None:
    before: Dump = {"uid=a": {"sn": ("x",)}, "uid=gone": {}, "uid=b": {"cn": ("1", "2")}}
    after: Dump = {"uid=a": {"sn": ("y",)}, "uid=new": {}, "uid=b": {"CN": ("1", "2")}}
    assert list(differences(before, after)) == [
        "uid=gone: is gone",
        "uid=new: was not there before",
        "uid=a: sn: x became y",
    ]


def test_only_a_single_password_counts_as_one() -> None:
    dump: Dump = {
        "uid=a": {"userpassword": ("{SSHA}x",)},
        "uid=b": {"userPassword": ("{SSHA}x", "{SSHA}y")},
        "uid=c": {"cn": ("c",)},
    }
    assert passwords_in(dump) == {"uid=a": "{SSHA}x"}
