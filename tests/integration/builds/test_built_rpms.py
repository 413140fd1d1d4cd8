"""A spec and an RPM that would use the network: neither gets one, with the real rpm and dnf."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from benches import MATRIX
from rows import DNF, row_of
from rpm_debian import ROW_ID, rpm_debian
from rpm_world import missing_tools

from dsbuilds.drivers.package_build import PackageOrder, build_packages
from dsbuilds.drivers.package_image import installed
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sources.source_package import spec_package
from dsbuilds.toolchains.toolchain_image import toolset_of
from dsharness.containers.container import running
from dsharness.containers.engine import Engine
from dsharness.model import Image
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        bool(missing_tools()), reason=f"making RPMs needs {', '.join(missing_tools())}"
    ),
]
ROW = row_of(DNF, id=ROW_ID, versions={"389-ds": "1"})
# Reading it asks for gcc where there is no network, and for what nobody has where there is one.
SPEC = """\
Name: 389-ds-base
Version: 1
Release: 1
Summary: s
License: MIT
BuildArch: noarch
Source0: toy.tar
BuildRequires: %(ls /sys/class/net | tr -d '\\n' | sed 's/^lo$/gcc/')
Requires: json-c-devel
%description
d
%prep
%setup -q -n toy
%install
mkdir -p %{buildroot}/opt
cp ldap/servers/slapd/main.c %{buildroot}/opt/
ln -s /etc/passwd %{_topdir}/packages-link
%post
cut -d: -f1 -s /proc/net/dev | tr -d " " >/opt/seen-network || cp /proc/net/dev /opt/seen-network
%files
/opt/main.c
"""


@pytest.fixture(scope="module")
def at(engine: Engine) -> Workshop:
    log = logs_home() / "builds" / "test-built-rpms.log"
    return Workshop(engine=engine, deadline=Deadline.after(1200), log=log)


@pytest.fixture(scope="module")
def image(engine: Engine, at: Workshop) -> Image:
    toolchain = next(each for each in MATRIX.toolchains if each.id == "debian-13")
    return rpm_debian(at, toolset_of(engine, MATRIX, toolchain, progress=print))


def test_neither_the_spec_nor_the_package_sees_a_network(
    engine: Engine, at: Workshop, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    with tarfile.open(folder / "toy.tar", "w") as tar:
        for name in ("configure.ac", "ldap/servers/slapd/main.c"):  # by which 389-ds is known
            member = tarfile.TarInfo(f"toy/{name}")
            member.size = 1
            tar.addfile(member, BytesIO(b"\n"))
    (folder / "389-ds-base.spec").write_text(SPEC)
    source = spec_package(folder, "389-ds-base-1-1.src.rpm")
    monkeypatch.setattr("dsbuilds.build_cache.cache_home", lambda: tmp_path / "cache")
    order = PackageOrder(row=ROW, image=image, source=source)
    made = build_packages(RpmDriver(), at, order, progress=print)
    own = installed(at, image, made, ROW, progress=print)
    try:
        assert own.packages["389-ds-base"].startswith("1-1")
        assert "system-devel" in own.packages, "what it needs came from the system's repository"
        with running(
            engine, own.reference, "sleep", "infinity", purpose="test-rpm", log=at.log
        ) as box:
            assert box.must("cat", "/opt/seen-network", what="look").split() == ["lo"]
    finally:
        engine.podman("rmi", "--force", own.reference, cleanup=True)
