"""What linters say, and which of it is new."""

from __future__ import annotations

import pytest

from dsvalidate.builds_gate.lint import findings, lint_check, new_findings
from dsvalidate.check import Status

LINTIAN = """\
N: a note
E: 389-ds-base: dir-or-file-in-opt [opt/x]
W: 389-ds-base: no-manual-page [usr/sbin/ns-slapd]
W: 389-ds-base-libs: package-has-long-file-name 389-ds-base-libs_3-1_amd64.deb
I: 389-ds-base: hardening-no-fortify-functions [usr/lib/a.so]
"""
RPMLINT = """\
============================ rpmlint session starts ============================
rpmlint: 2.6.1
389-ds-base.x86_64: E: dir-or-file-in-opt /opt/x
389-ds-base.x86_64: W: no-documentation
389-ds-base.x86_64: I: something
 2 packages and 0 specfiles checked; 1 errors, 1 warnings, 0 filtered
"""


@pytest.mark.parametrize(
    ("kind", "text", "tags"),
    [
        ("deb", LINTIAN, ["dir-or-file-in-opt", "no-manual-page", "package-has-long-file-name"]),
        ("rpm", RPMLINT, ["dir-or-file-in-opt", "no-documentation"]),
    ],
)
def test_errors_and_warnings_are_read(kind, text, tags):
    found = findings(kind, text)
    assert [each.tag for each in found] == tags
    assert [each.severity for each in found][:2] == ["E", "W"]


def test_only_what_stock_does_not_have_is_new():
    stock = findings("deb", LINTIAN)
    twice = findings("deb", LINTIAN + "E: 389-ds-base: dir-or-file-in-opt [opt/x]\n")
    assert new_findings(stock, stock, {}) == ()
    assert [each.tag for each in new_findings(stock, twice, {})] == ["dir-or-file-in-opt"]


def test_a_version_in_a_finding_makes_it_no_other_one():
    stock = findings("deb", LINTIAN)
    patched = findings("deb", LINTIAN.replace("_3-1_", "_3-1+ours1_"))
    assert new_findings(stock, patched, {"3-1": "V", "3-1+ours1": "V"}) == ()
    assert len(new_findings(stock, patched, {})) == 1


@pytest.mark.parametrize(
    ("new", "status", "said"),
    [
        ("", Status.PASSED, "nothing that the stock packages do not have"),
        ("W: a: something [x]", Status.WARNED, "0 new errors and 1 new warning: something"),
        (
            "W: a: other\nE: a: something [x]",
            Status.FAILED,
            "1 new error and 1 new warning: something",
        ),
    ],
)
def test_new_errors_fail_and_new_warnings_warn(new, status, said):
    found = findings("deb", new)
    check = lint_check("deb", (), found, found, (), ())
    assert check.status is status
    assert said in check.found
    assert bool(check.advice) == (status is not Status.PASSED)
    assert all(each.line in "\n".join(check.details) for each in found)


def test_the_labs_own_changelog_entry_does_not_count():
    found = findings("deb", "E: a: bogus-mail-host-in-debian-changelog x\nW: a: something [x]\n")
    check = lint_check("deb", (), found, found, found[:1], ())
    assert check.status is Status.WARNED
    assert check.details[1].startswith("not counted, the lab's changelog entry")
