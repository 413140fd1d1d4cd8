"""Debian packages for real: built with a patch, installed by apt, served, read back.

The first run on a machine takes as long as the compiler does; later ones find the builds by key.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from benches import MATRIX, image_of
from changes import broken, misfit, other_scheme

from dsbuilds.drivers.deb import DebDriver
from dsbuilds.drivers.package_build import PACKAGES, PackageOrder, build_packages
from dsbuilds.drivers.package_image import installed
from dsbuilds.sandbox.sandbox import Limits, confined_run, work_folder
from dsbuilds.sandbox.untrusted_files import temporary_name
from dsbuilds.sources.source_package import SourcePackage, distribution_source
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.errors import BuildError, EditError, SourceError
from dsharness.measure.golden_state import golden_state
from dsharness.model import Build, DirectoryContent, DriverName, Image, Settings
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsharness.systems import Seed
from dsimages.buildah import Workshop

ROW = MATRIX.row("debian-13")
PROBE = """#!/bin/sh
set -u
grep ^CapEff /proc/self/status
tail -n +3 /proc/net/dev | cut -d: -f1
bash -c 'exec 3<>/dev/tcp/192.0.2.1/80' && echo reached
touch /usr/written && echo wrote
exit 3
"""


@pytest.fixture(scope="module")
def at(engine) -> Workshop:
    log = logs_home() / "builds" / "test-deb.log"
    return Workshop(engine=engine, deadline=Deadline.after(2400), log=log)


@pytest.fixture(scope="module")
def image(engine) -> Image:
    return image_of(engine, ROW.id)


@pytest.fixture(scope="module")
def source(at, image) -> SourcePackage:
    return distribution_source(at, image, "389-ds-base", None, progress=print)


@pytest.fixture(scope="module")
def plain(image, source) -> PackageOrder:
    return PackageOrder(row=ROW, image=image, source=source)


@pytest.fixture(scope="module")
def toolset(at, plain) -> ToolchainImage:
    return DebDriver().toolset(at, plain, progress=print)


@pytest.fixture(scope="module")
def tree(at, plain, toolset) -> Tree:
    return DebDriver().source_tree(at, plain, toolset)


@pytest.fixture(scope="module")
def patched(at, image, source, tree) -> Build:
    order = PackageOrder(
        row=ROW, image=image, source=source, patches=(other_scheme(tree),)
    )  # fmt: skip
    return build_packages(DebDriver(), at, order, progress=print)


def test_the_source_is_what_the_distribution_offers(source, tree, image):
    assert source.name == "389-ds-base"
    assert source.version == image.packages["389-ds-base"]
    assert "AC_INIT" in (tree.read("configure.ac") or "")
    assert tree.revision == source.version


def test_no_such_version_of_the_source(at, image):
    with pytest.raises(SourceError, match=r"wanted 1\.2\.3; available: 3\.1\.2"):
        distribution_source(at, image, "389-ds-base", "1.2.3", progress=print)


@pytest.mark.whole
def test_built_installed_by_apt_served_and_read_back(engine, at, image, patched):
    assert patched.provenance.driver is DriverName.DEB
    assert [patch.name for patch in patched.provenance.patches] == ["scheme.patch"]
    assert patched.provenance.tools["gcc"]
    assert (Path(patched.folder) / PACKAGES / "Packages").is_file()

    own = installed(at, image, patched, ROW, progress=print)
    assert own.packages["389-ds-base"] == f"{image.packages['389-ds-base']}+dsbisect1"
    assert own.build == patched.provenance
    others = {name for name, version in own.packages.items() if image.packages[name] != version}
    assert others == {"389-ds-base", "389-ds-base-libs", "python3-lib389"}

    seed = Seed(content=DirectoryContent(number=20), settings=Settings(id="default"))
    golden = golden_state(engine, own, ROW.system, seed, progress=print)
    assert patched.promise.asked_of(golden.facts)
    assert patched.promise.broken_by(golden.facts) is None


@pytest.mark.whole
def test_the_same_order_is_built_and_installed_once(at, image, source, tree, patched):
    said: list[str] = []
    order = PackageOrder(row=ROW, image=image, source=source, patches=(other_scheme(tree),))
    again = build_packages(DebDriver(), at, order, progress=said.append)
    assert again.key == patched.key
    installed(at, image, again, ROW, progress=print)
    first = installed(at, image, again, ROW, progress=said.append)
    assert first.packages["389-ds-base"].endswith("+dsbisect1")
    assert said == []


def test_a_patch_that_does_not_fit_is_refused_with_its_hunk(at, image, source, tree):
    order = PackageOrder(row=ROW, image=image, source=source, patches=(misfit(tree),))
    with pytest.raises(EditError, match=r"misfit\.patch does not fit") as caught:
        build_packages(DebDriver(), at, order, progress=print)
    assert "of another time" in caught.value.message


def noted_folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where this process builds from now on."""
    names: list[Path] = []

    def noted(parent: Path, kind: str) -> Path:
        names.append(temporary_name(parent, kind))
        return names[-1]

    monkeypatch.setattr("dsbuilds.sandbox.sandbox.temporary_name", noted)
    return names


@pytest.mark.whole
def test_a_patch_that_does_not_compile_is_told_by_the_compilers_line(
    at, image, source, tree, monkeypatch
):
    names = noted_folders(monkeypatch)
    order = PackageOrder(row=ROW, image=image, source=source, patches=(broken(tree),))
    said = r"getsocketpeer\.c:\d+.*error: unknown type name"
    for _ in range(2):  # the second time it is remembered
        with pytest.raises(BuildError, match=said) as caught:
            build_packages(DebDriver(), at, order, progress=print)
        assert caught.value.log is not None
        assert "no_such_type" in caught.value.log.read_text(encoding="utf-8")
    assert not [path for path in names if path.exists()]


def test_a_build_has_no_network_no_capability_and_a_read_only_system(at, toolset, tmp_path):
    script = tmp_path / "probe"
    script.write_text(PROBE, encoding="utf-8")
    script.chmod(0o755)
    with work_folder() as build:
        said = confined_run(at, toolset.reference, script, build=build, limits=Limits(time_s=60))
    assert said is not None
    assert "CapEff:\t0000000000000000\nlo\n" in said.replace("    ", "")
    assert "Network is unreachable" in said
    assert "Read-only file system" in said
    assert "reached" not in said.replace("unreachable", "")
    assert "wrote" not in said
