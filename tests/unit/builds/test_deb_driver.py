"""Debian's changelog, series and needs: pure text in, pure text out."""

from __future__ import annotations

import re
import subprocess

import pytest
from goldens import assert_golden
from hypothesis import example, given
from hypothesis import strategies as st

from dsbuilds.drivers.deb import build_needs, suffixed, with_entry, with_patches
from dsbuilds.drivers.package_build import headed
from dsharness.errors import SourceError

CHANGELOG = """\
389-ds-base (3.1.2+dfsg1-1+deb13u1) trixie; urgency=medium

  * Non-maintainer upload.

 -- Some Body <some@body.invalid>  Tue, 05 May 2026 10:09:43 +0300

389-ds-base (3.1.2+dfsg1-1) unstable; urgency=medium

  * New upstream release.

 -- Some Body <some@body.invalid>  Mon, 04 May 2026 10:09:43 +0300
"""
DSC = """\
-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA512

Format: 3.0 (quilt)
Source: 389-ds-base
Version: 3.1.2+dfsg1-1
Build-Depends: cargo, debhelper-compat (= 13),
 libdb-dev <!nocheck>,
 rustc
Build-Conflicts: nothing
Package-List:
 389-ds deb net optional arch=all

-----BEGIN PGP SIGNATURE-----

iQIzBAEBCgAdFiEE
-----END PGP SIGNATURE-----
"""
DIFF = "--- a/one.c\n+++ b/one.c\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.mark.parametrize(
    ("version", "ours"),
    [
        ("3.1.2+dfsg1-1", "3.1.2+dfsg1-1+dsbisect1"),
        ("2:1.4-1astra.se3", "2:1.4-1astra.se3+dsbisect1"),
        ("3.1.2-1+dsbisect1", "3.1.2-1+dsbisect2"),
        ("3.1.2-1+dsbisect9", "3.1.2-1+dsbisect10"),
    ],
)
def test_a_version_of_our_own(version, ours):
    assert suffixed(version) == ours


@pytest.mark.parametrize("theirs", ["", "+b1", "+deb13u1", "~bpo12+1"])
def test_ours_sorts_after_the_archives_and_its_rebuilds_and_updates(theirs):
    version = "3.1.2+dfsg1-1"
    later = ["dpkg", "--compare-versions", suffixed(version), "gt", f"{version}{theirs}"]
    assert subprocess.run(later, check=False).returncode == 0


def test_the_changelog_gets_an_entry_of_the_last_ones_date():
    text = with_entry(CHANGELOG, ["scheme.patch: the old\n  scheme", "rounds.patch: fewer"])
    assert_golden("packages/changelog", text)


def test_a_rebuild_without_patches_says_so():
    assert "  * Rebuilt as it is.\n" in with_entry(CHANGELOG, [])


def test_a_changelog_that_cannot_be_read():
    with pytest.raises(SourceError, match="no entry that can be read"):
        with_entry("nothing\n", [])


@pytest.mark.parametrize(
    ("series", "after"),
    [
        ("", "ours.patch\n"),
        ("a.diff\nb.patch -p1\n", "a.diff\nb.patch -p1\nours.patch\n"),
        ("a.diff", "a.diff\nours.patch\n"),
        ("# off: ours.patch\n", "# off: ours.patch\nours.patch\n"),
    ],
)
def test_patches_come_last_in_the_series(series, after):
    assert with_patches(series, ["ours.patch"]) == after


def test_a_patch_of_that_name_is_there_already():
    with pytest.raises(SourceError, match=r"has a ours\.patch already"):
        with_patches("a.diff\nours.patch -p1\n", ["ours.patch"])


def test_a_patch_gets_a_header_unless_it_has_one():
    text = headed("Two\nlines", DIFF)
    assert text.startswith("From: dsbisect <dsbisect@localhost>\nSubject: Two lines\n")
    assert text.endswith(DIFF)
    assert headed("again", text) == text
    own = f"Description: mine\nBug: none\n{DIFF}"
    assert headed("other", own) == own
    # Words of the change itself are no header.
    assert headed("t", DIFF.replace("+new", "+From: new")).startswith("From: dsbisect")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
@example("---")
def test_no_title_breaks_a_header_or_an_entry(title):
    head = headed(title, DIFF).partition("\n---\n")[0]
    assert head.count("\n") == 3, "From, Subject, Forwarded, and the line between"
    entry = with_entry(CHANGELOG, [title]).partition(" -- ")[0]
    assert len([line for line in entry.splitlines() if re.match(r" {2}\*", line)]) == 1


def test_what_a_source_is_built_with_is_all_that_its_toolchain_depends_on():
    needs = build_needs(DSC)
    assert_golden("packages/needs.dsc", needs)
    assert build_needs(DSC.replace("3.1.2+dfsg1-1", "3.1.3-1")) == needs
