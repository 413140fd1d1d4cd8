"""How suspicious a commit is by what it changes."""

from __future__ import annotations

import pytest

from dsbisect.commits.commit_range import MOST, prior_of, prior_table
from dsharness.errors import UsageError
from dsharness.products import source_facts

SOURCE = source_facts("389-ds")


def weight(files, own=None):
    return prior_of({"a": files}, SOURCE, own or {})["a"]


def test_the_hot_path_is_more_suspect_than_the_rest():
    order = (
        "ldap/servers/plugins/pwdstorage/pbkdf2_pwd.c", "ldap/servers/slapd/pw.c",
        "ldap/servers/plugins/memberof/memberof.c", "Makefile.am", "ldap/schema/01core.ldif",
        "man/man8/ns-slapd.8",
    )  # fmt: skip
    weights = [weight([path]) for path in order]
    assert weights == sorted(weights, reverse=True)


def test_the_most_suspicious_file_decides_and_no_file_is_hardly_suspect():
    assert weight(["man/a", "src/plugins/pwdchan/src/lib.rs"]) == 3.0
    assert weight([]) == 0.5


def test_it_is_mild():
    assert max(SOURCE.hot_paths.values()) / min(SOURCE.hot_paths.values()) <= 10


def test_every_candidate_has_its_own():
    files = {"a": ["man/x"], "b": ["ldap/servers/slapd/bind.c"]}
    assert prior_of(files, SOURCE, {}) == {"a": 0.3, "b": 2.0}


def test_the_users_patterns_come_first():
    table = prior_table(["ldap/servers/slapd/back-ldbm/*=5", "man/*=0.1"])
    assert weight(["ldap/servers/slapd/back-ldbm/ldbm_search.c"], table) == 5.0
    assert weight(["man/a"], table) == 0.1


@pytest.mark.parametrize("text", ["", "x", "=3", "x=much", "x=0", f"x={10 * MOST}", "x=nan"])
def test_wrong_words(text):
    with pytest.raises(UsageError, match="PATTERN=WEIGHT"):
        prior_table([text])
