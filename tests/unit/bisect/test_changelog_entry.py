"""The newest entry of a changelog, and what a packager is told about it."""

from __future__ import annotations

import pytest

from dsvalidate.builds_gate.made_packages import (
    Package,
    changelog_check,
    newest_entry,
    unnamed,
    version_check,
)
from dsvalidate.check import Status

DEB = """\
389-ds-base (3.1.2+dfsg1-1+dsbisect1) trixie; urgency=medium

  * edits.patch: fewer rounds

 -- dsbisect <dsbisect@localhost>  Tue, 05 May 2026 10:09:43 +0300

389-ds-base (3.1.2+dfsg1-1) unstable; urgency=medium

  * old.patch

 -- Some Body <some@body.invalid>  Mon, 04 May 2026 10:09:43 +0300
"""
RPM = """\
* Mon Jan 01 2024 dsbisect <dsbisect@localhost> - 3.1.2-3.dsbisect1
- edits.patch: fewer rounds

* Mon Jan 01 2024 Some Body <some@body.invalid> - 3.1.2-3
- old.patch
"""
DEB_SERVER = Package(name="s", version="2:3.1.2+dfsg1-1+dsbisect1", file="s.deb")
RPM_SERVER = Package(name="s", version="3.1.2-3.dsbisect1", file="s.rpm")


@pytest.mark.parametrize(("text", "server"), [(DEB, DEB_SERVER), (RPM, RPM_SERVER)])
def test_an_entry_of_the_version_that_names_the_patch(text, server):
    check = changelog_check(newest_entry(text), ["edits.patch"], server)
    assert check.status is Status.PASSED
    assert check.found.endswith("and names edits.patch.")


@pytest.mark.parametrize(("text", "server"), [(DEB, DEB_SERVER), (RPM, RPM_SERVER)])
def test_a_patch_that_only_an_older_entry_names(text, server):
    assert unnamed(newest_entry(text), ["old.patch", "edits.patch"]) == ("old.patch",)
    check = changelog_check(newest_entry(text), ["old.patch"], server)
    assert check.status is Status.WARNED
    assert "does not name old.patch" in check.found
    assert check.advice


def test_an_entry_of_another_version():
    server = Package(name="s", version="3.1.2-4.fc41", file="s.rpm")
    assert "is not of 3.1.2-4.fc41" in changelog_check(newest_entry(RPM), [], server).found
    fedora = Package(name="s", version="3.1.2-3.fc41", file="s.rpm")
    assert changelog_check(newest_entry(RPM), [], fedora).status is Status.PASSED


def test_no_changelog():
    assert newest_entry("\n") == ()
    assert changelog_check((), [], DEB_SERVER).found == "s has no changelog."


def test_a_version_that_is_no_update_fails():
    check = version_check(DEB_SERVER, "9", newer=False)
    assert check.status is Status.FAILED
    assert "does not sort after the stock version 9" in check.found
    assert version_check(DEB_SERVER, "1", newer=True).status is Status.PASSED
    assert version_check(DEB_SERVER, "", newer=True).status is Status.NOT_RUN
