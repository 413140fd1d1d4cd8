"""Edits of spec files, and what rpmbuild and dnf are told."""

from __future__ import annotations

import pytest
from goldens import assert_golden

from dsbuilds.drivers.rpm import defines
from dsbuilds.drivers.spec import with_patches, with_release
from dsharness.errors import EditError, SourceError

SPEC = """\
%bcond bundle_jemalloc 1
Name: 389-ds-base
Version: 3.1.2
Release: 3%{{?dist}}
Source0: %{{name}}-%{{version}}.tar.bz2
%if %{{with bundle_jemalloc}}
Source3: jemalloc.tar.bz2
%endif
Patch: 0001-first.patch
BuildRequires: gcc

%description
Patch9001: only words

%package libs
Summary: Libraries

%prep
{prep}

%build
make

%changelog
* Mon Jan 01 2024 Some Body <some@body.invalid> - 3.1.2-3
- Release: as it was
"""
BY_HAND = """\
%setup -q -n %{name}-%{version}
%if %{with bundle_jemalloc}
%setup -q -n %{name}-%{version} -T -D -b 3
%endif
%patch -P 0 -p1
cp %{SOURCE2} README.devel"""


def spec(prep: str) -> str:
    return SPEC.format(prep=prep)


@pytest.mark.parametrize(
    ("name", "prep"),
    [
        ("autosetup", "%autosetup -p1 -n %{name}-%{version}"),
        ("autosetup-then-autopatch", "%autosetup -N\n%autopatch -p1"),
        (
            "autopatch-of-a-range",
            "%autosetup -N\n%autopatch -p1 -M 99\n%autopatch -p1 -m 100 -M 200",
        ),
        ("by-hand", BY_HAND),
        ("setup-in-a-condition", BY_HAND.replace("%patch -P 0 -p1\n", "")),
        ("nothing", "tar xf %{SOURCE0}"),
    ],
)
def test_patches_are_named_and_applied_as_the_last_ones(name, prep):
    text = with_patches(spec(prep), ["scheme.patch", "rounds.patch"])
    assert_golden(f"packages/{name}.spec", with_release(text))


def test_no_patch_changes_nothing():
    assert with_patches(spec(BY_HAND), []) == spec(BY_HAND)


def test_the_last_source_may_stand_in_a_condition():
    text = SPEC.replace("Patch: 0001-first.patch\n", "").format(prep=BY_HAND)
    lines = with_patches(text, ["a.patch"]).splitlines()
    assert lines[lines.index("Patch9001: a.patch") - 1] == "%endif"


@pytest.mark.parametrize(
    ("release", "ours"),
    [
        ("3%{?dist}", "3%{?dist}.dsbisect1"),
        ("%{autorelease -n %{?with_asan:-e asan}}%{?dist}", None),
        ("0.1.rc2", "0.1.rc2.dsbisect1"),
    ],
)
def test_the_release_sorts_after_the_packagers(release, ours):
    text = f"Name: a\nRelease:   {release}  \nLicense: b\n"
    wanted = ours or f"{release}.dsbisect1"
    assert f"Release:   {wanted}  \nLicense" in with_release(text)


@pytest.mark.parametrize("prep", ["%autosetup", "%autosetup -p0", "%autosetup -N\n%autopatch"])
def test_a_spec_that_strips_otherwise_is_refused(prep):
    with pytest.raises(EditError, match="not with -p1"):
        with_patches(spec(prep), ["a.patch"])


def test_a_spec_that_was_built_here_before_is_refused():
    again = with_patches(spec(BY_HAND), ["a.patch"])
    with pytest.raises(SourceError, match="Patch9001 already"):
        with_patches(again, ["b.patch"])


@pytest.mark.parametrize(("text", "lacks"), [("Name: a\n", "%prep"), ("", "%prep")])
def test_no_spec_at_all(text, lacks):
    with pytest.raises(SourceError, match=lacks):
        with_patches(text, ["a.patch"])
    with pytest.raises(SourceError, match="no Release"):
        with_release(text)


def test_dnf_is_told_what_rpmbuild_is_told():
    assert defines(("--without", "cockpit", "--with", "asan")) == (
        "-D", "_without_cockpit 1", "-D", "_with_asan 1",
    )  # fmt: skip
