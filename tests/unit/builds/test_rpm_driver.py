"""Edits of spec files, and the input of rpmbuild and dnf."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile

import pytest
from goldens import assert_golden
from rows import KOJI, row_of

from dsbuilds.drivers.package_build import PackageOrder
from dsbuilds.drivers.rpm import (
    FULL_VERSION,
    REQUIRES,
    defines,
    lay_out_sources,
    needs_spec,
    with_changelog,
    with_patches,
    with_release,
)
from dsbuilds.edits.edit import Patch
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sources.source_package import spec_package, take_in
from dsharness.errors import EditError, SourceError
from dsharness.model import Image

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


def test_the_changelog_gets_an_entry_of_the_last_ones_date():
    before = spec(BY_HAND)
    text = with_changelog(
        before, ["scheme.patch: the old\n  scheme, 100 % of it", "b.patch: fewer"]
    )
    top, heading, below = before.partition("%changelog\n")
    entry = text.removeprefix(top + heading).removesuffix(below)
    assert entry.splitlines() == [
        f"* Mon Jan 01 2024 dsbisect <dsbisect@localhost> - {FULL_VERSION}",
        "- scheme.patch: the old scheme, 100 %% of it",
        "- b.patch: fewer",
        "",
    ]


@pytest.mark.parametrize("changelog", ["", "\n%changelog", "\n%changelog\n"])
def test_the_first_entry_has_a_date_that_stays(changelog):
    text = with_changelog(f"Name: a\n%files\n/a{changelog}", [])
    assert text.startswith("Name: a\n%files\n/a\n")
    assert text.endswith("%{release}\n- Rebuilt as it is.\n\n")
    assert "\n%changelog\n* Fri Jan 01 2010 dsbisect" in text


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


def test_rpmspec_is_told_what_rpmbuild_is_told():
    assert defines(("--without", "cockpit", "--with", "asan")) == (
        "--define", "_without_cockpit 1", "--define", "_with_asan 1",
    )  # fmt: skip


def test_what_a_spec_asks_for_is_installed_by_a_spec_of_the_labs_own():
    said = "gcc\nrpmlib(CompressedFileNames) <= 3.0.4-1\npkgconfig(nss) >= 3.50\n(a or b)\ngcc\n\n"
    lines = needs_spec(said).splitlines()
    asked = [line for line in lines if line.startswith("BuildRequires: ")]
    assert asked == [
        "BuildRequires: gcc", "BuildRequires: pkgconfig(nss) >= 3.50", "BuildRequires: (a or b)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line", ["%(touch /tmp/x)", "a%{?x}", "gcc\x1b[31m", "-y", "a;b", "a`b`", "a$b", "x" * 500]
)
def test_what_rpm_would_evaluate_is_no_package(line):
    with pytest.raises(UnbuildableError, match="which is not a package"):
        needs_spec(f"gcc\n{line}\n")


@pytest.mark.skipif(shutil.which("rpmspec") is None, reason="needs rpmspec")
def test_the_lists_script_reads_a_spec(tmp_path):
    """As in the container, where it has no network: macros are evaluated, not handed on."""
    spec = tmp_path / "a.spec"
    asks = (
        "%if 0%{?_without_x:1}\nBuildRequires: none\n%else\nBuildRequires: some\n%endif\n"
        "BuildRequires: %(echo evaluated)\n"
    )
    spec.write_text(TOY.format(prep="true").replace("Source0", f"{asks}Source0"))
    script = REQUIRES.read_text().replace("/build", str(tmp_path))
    (tmp_path / "SPECS").mkdir()
    spec.rename(tmp_path / "SPECS" / "a.spec")
    subprocess.run(
        ["sh", "-c", script, "sh", "a.spec", *defines(("--without", "x"))],
        check=True, capture_output=True,
    )  # fmt: skip
    asked = needs_spec((tmp_path / "needs" / "requires").read_text())
    assert "BuildRequires: none\n" in asked
    assert "BuildRequires: evaluated\n" in asked
    assert "some" not in asked


CHANGES = "[%{CHANGELOGNAME}\n%{CHANGELOGTEXT}\n]"
TOY = """\
Name: 389-ds-base
Version: 1
Release: 1
Summary: s
License: MIT
Source0: toy.tar
Patch: theirs.patch
%description
d
%prep
{prep}
"""
LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
THEIRS = "--- a/file\n+++ b/file\n@@ -1,3 +1,3 @@\n-one\n+ONE\n two\n three\n"
OURS = "--- a/file\n+++ b/file\n@@ -6,3 +6,3 @@\n six\n seven\n-eight\n+EIGHT\n"


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="needs rpmbuild")
@pytest.mark.parametrize(
    "prep",
    [
        "%autosetup -p1 -n toy",
        "%autosetup -N -n toy\n%autopatch -p1",
        "%setup -q -n toy\n%patch -P 0 -p1",
        "%setup -q -n toy\n%autopatch -p1 -M 9000",
        "%if 1\n%setup -q -n toy\n%patch -P 0 -p1\n%endif\nls file",
    ],
)
def test_rpmbuild_itself_applies_theirs_and_ours(tmp_path, prep):
    source = tmp_path / "source"
    source.mkdir()
    with tarfile.open(source / "toy.tar", "w") as tar:
        member = tarfile.TarInfo("toy/file")
        member.size = len(LINES)
        tar.addfile(member, io.BytesIO(LINES.encode()))
    (source / "389-ds-base.spec").write_text(TOY.format(prep=prep))
    (source / "theirs.patch").write_text(THEIRS)
    order = PackageOrder(
        row=row_of(KOJI),
        image=Image(candidate_id="toy-koji", reference="r", key="k"),
        source=spec_package(source, "389-ds-base-1-1.src.rpm"),
        patches=(Patch(name="ours.patch", title="eight", text=OURS),),
    )
    build = tmp_path / "build"
    build.mkdir()
    spec = lay_out_sources(order, build)
    argv = ["rpmbuild", "-bp", "--nodeps", "--define", f"_topdir {build}", str(spec)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (file,) = (build / "BUILD").rglob("toy/file")
    assert file.read_text() == LINES.replace("one", "ONE").replace("eight", "EIGHT")
    query = ["rpmspec", "--query", "--srpm", "--queryformat", CHANGES, str(spec)]
    said = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    assert said == "dsbisect <dsbisect@localhost> - 1-1.dsbisect1\n- ours.patch: eight\n"


def test_a_file_of_the_packagers_is_not_overwritten(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "389-ds-base.spec").write_text(TOY.format(prep="%autosetup -p1"))
    (tmp_path / "source" / "theirs.patch").write_text(THEIRS)
    order = PackageOrder(
        row=row_of(KOJI),
        image=Image(candidate_id="toy-koji", reference="r", key="k"),
        source=spec_package(tmp_path / "source", "389-ds-base-1-1.src.rpm"),
        patches=(Patch(name="theirs.patch", title="eight", text=OURS),),
    )
    with pytest.raises(SourceError, match=r"has a theirs\.patch already"):
        lay_out_sources(order, tmp_path)


def test_what_an_srpm_unpacks_to_is_files(tmp_path):
    for part in ("SPECS", "SOURCES"):
        (tmp_path / "build" / part).mkdir(parents=True)
    (tmp_path / "build" / "SPECS" / "a.spec").write_text("Name: a\n")
    (tmp_path / "build" / "SOURCES" / "a.tar").write_text("a")
    (tmp_path / "taken").mkdir()
    take_in(tmp_path / "build", tmp_path / "taken", "a.src.rpm", tmp_path / "log")
    assert sorted(path.name for path in (tmp_path / "taken").iterdir()) == ["a.spec", "a.tar"]


@pytest.mark.parametrize("where", ["SOURCES/stolen", "SOURCES"])
def test_a_link_that_an_srpm_holds_is_not_followed(tmp_path, where):
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "secret").write_text("secret")
    for part in ("SPECS", "SOURCES"):
        (tmp_path / "build" / part).mkdir(parents=True)
    link = tmp_path / "build" / where
    if link.is_dir():
        link.rmdir()
    link.symlink_to(tmp_path / "host")
    (tmp_path / "taken").mkdir()
    with pytest.raises(SourceError, match=r"a\.src\.rpm cannot be used"):
        take_in(tmp_path / "build", tmp_path / "taken", "a.src.rpm", tmp_path / "log")
    assert list((tmp_path / "taken").iterdir()) == []
