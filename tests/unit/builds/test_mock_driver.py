"""Mock: its input, and what is done with its output."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest
from goldens import assert_golden
from rows import KOJI, row_of

from dsbuilds.build_request import check_build
from dsbuilds.drivers.mock import build_mock
from dsbuilds.drivers.mock_config import Chroot, Commands, config, fedora_chroot
from dsbuilds.drivers.package_build import PACKAGES, PackageOrder, index_of
from dsbuilds.edits.contract import Patch
from dsbuilds.sources.srpm import described
from dsharness.containers.engine import Engine
from dsharness.errors import BuildError, MatrixError, ToolMissingError
from dsharness.model import BuildSpec, DriverName, Image
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop

ARCHIVE = "https://archives.fedoraproject.org/pub/archive/fedora/linux"
REPOSITORIES = {
    name: f"{ARCHIVE}/{name}/37/Everything/x86_64/{end}"
    for name, end in (("releases", "os/"), ("updates", ""))
}
ROW = row_of(KOJI)
SPEC = """\
Name: 389-ds-base
Version: 2.0.15
Release: 1.toy
Summary: s
License: MIT
BuildArch: noarch
Source0: greeting.tar
%description
d
%prep
%setup -q -n greeting
%build
grep -q . greeting || { echo 'greeting:1:1: error: it says nothing'; exit 1; }
%install
mkdir -p %{buildroot}/usr/share/toy
cp greeting %{buildroot}/usr/share/toy/
%files
/usr/share/toy/greeting
"""
PATCH = "--- a/greeting\n+++ b/greeting\n@@ -1 +1 @@\n-hello\n+{new}\n"
# A mock that has no chroot, but takes the same words and leaves the same files.
FAKE = """#!/bin/sh
echo "$*" >>"$DSBISECT_TEST_SAID"
while [ $# -gt 0 ]; do
    case $1 in
    --version) echo 6.1 && exit ;;
    --spec) spec=$2 ;;
    --sources) sources=$2 ;;
    --resultdir) result=$2 ;;
    --rebuild) srpm=$2 ;;
    --clean | --installdeps) exit 0 ;;
    esac
    shift
done
mkdir -p "$result"
top=$(mktemp -d)
if [ -n "$spec" ]; then
    rpmbuild -bs --define "_topdir $top" --define "_sourcedir $sources" \\
        --define "_srcrpmdir $result" "$spec"
else
    rpmbuild --rebuild --define "_topdir $top" --define "_rpmdir $top/out" "$srpm" \\
        >"$result/build.log" 2>&1 || { echo 'ERROR: Command failed' >&2; exit 1; }
    find "$top/out" -name '*.rpm' -exec mv {} "$result" ';'
fi
rm -rf "$top"
"""


def test_an_ended_release_is_fed_from_the_archive():
    assert_golden("mock/fedora-37.cfg", config(fedora_chroot("37", REPOSITORIES), "dsbisect-toy"))


def test_a_chroot_without_archives_keeps_its_own_mirrors():
    text = config(Chroot(base="centos-stream-9-x86_64"), "dsbisect-toy")
    assert_golden("mock/centos-stream-9.cfg", text)


@pytest.mark.parametrize(
    "chroot",
    [
        Chroot(base="../../etc/passwd"),
        Chroot(base="eol/fedora-37'); import os; ('"),
    ],
)
def test_no_word_leaves_its_place(chroot):
    with pytest.raises(MatrixError):
        config(chroot, "dsbisect-toy")


def test_a_release_is_a_number():
    with pytest.raises(MatrixError, match="rawhide"):
        fedora_chroot("rawhide", {})


def test_the_commands_and_their_order():
    commands = Commands(config=Path("/w/dsbisect.cfg"), flags=("--without", "cockpit"))
    srpm, result = Path("/w/result/a.src.rpm"), Path("/w/result")
    argvs = [
        commands.source(Path("/w/SPECS/a.spec"), Path("/w/SOURCES"), result),
        commands.dependencies(srpm),
        commands.rebuild(srpm, result),
        commands.clean(),
    ]
    assert_golden("mock/commands", "".join(f"{' '.join(argv)}\n" for argv in argvs))


@pytest.fixture
def at(tmp_path, monkeypatch) -> Workshop:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    engine = Engine(
        podman_version="5", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
        limits_memory=True,
    )  # fmt: skip
    return Workshop(engine=engine, deadline=Deadline.after(60), log=tmp_path / "log")


@pytest.fixture
def order(tmp_path) -> PackageOrder:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "389-ds-base.spec").write_text(SPEC)
    with tarfile.open(folder / "greeting.tar", "w") as tar:
        member = tarfile.TarInfo("greeting/greeting")
        member.size = len(b"hello\n")
        tar.addfile(member, io.BytesIO(b"hello\n"))
    image = Image(candidate_id=ROW.id, reference="none", key="none")
    source = described(folder, "389-ds-base-2.0.15-1.toy.src.rpm")
    return PackageOrder(row=ROW, image=image, source=source)


def patched(order: PackageOrder, new: str) -> PackageOrder:
    patch = Patch(name="new.patch", title="another greeting", text=PATCH.format(new=new))
    return PackageOrder(row=order.row, image=order.image, source=order.source, patches=(patch,))


@pytest.fixture
def said(tmp_path, monkeypatch) -> Path:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "mock").write_text(FAKE)
    (tools / "mock").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.setenv("DSBISECT_TEST_SAID", str(tmp_path / "said"))
    return tmp_path / "said"


def test_a_host_without_mock_is_told_what_can_be_done(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    spec = BuildSpec(driver=DriverName.MOCK)
    with pytest.raises(ToolMissingError, match="mock and rpm") as caught:
        check_build(spec, ROW.id, folder=tmp_path)
    assert "dnf install mock" in caught.value.hint
    assert "driver: rpm" in caught.value.hint


needs_rpm = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("rpmbuild", "createrepo_c")),
    reason="the stand-in for mock needs rpmbuild and createrepo_c",
)


@needs_rpm
def test_built_with_the_patch_once_and_kept_as_a_repository(at, order, said):
    chroot = fedora_chroot("37", REPOSITORIES)
    build = build_mock(at, patched(order, "good day"), chroot, progress=print)
    repository = Path(build.folder) / PACKAGES
    ((name, version, file),) = index_of(repository)
    assert (name, version) == ("389-ds-base", "2.0.15-1.toy.dsbisect1")
    assert (repository / file).is_file()
    assert (repository / "repodata" / "repomd.xml").is_file()
    assert build.provenance.toolchain == "mock eol/fedora-37-x86_64"
    assert build.provenance.clean
    commands = said.read_text().splitlines()
    assert [line for line in commands if "--rebuild" in line and "--offline" in line]
    assert commands[-1].endswith("--clean")
    again = build_mock(at, patched(order, "good day"), chroot, progress=print)
    assert again == build
    assert said.read_text().splitlines()[len(commands) :] == ["--version"]


@needs_rpm
def test_a_failure_is_told_by_what_the_build_said(at, order, said):
    with pytest.raises(BuildError, match="error: it says nothing") as caught:
        build_mock(at, patched(order, ""), fedora_chroot("37", REPOSITORIES), progress=print)
    assert caught.value.log == at.log
    assert said.read_text().splitlines()[-1].endswith("--clean"), "the chroot goes all the same"
