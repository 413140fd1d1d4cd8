"""RPM packages for real: rpmbuild with a patch, dnf from a repository, served and measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from benches import MATRIX, benched
from changes import misfit, other_scheme
from rpm_row import ROW, VERSION, debian_order, kept_srpm, rpm_system, workshop
from rpm_world import missing_tools
from turns import turn_of

from dsbuilds.drivers.package_build import PACKAGES, PackageOrder, build_packages
from dsbuilds.drivers.package_image import installed
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sources.source_package import SourcePackage, srpm_source
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import EditError, SourceError
from dsharness.measure.golden_state import golden_state
from dsharness.measure.sample import take_sample
from dsharness.model import Build, DirectoryContent, DriverName, Image, Settings, SrpmSource
from dsharness.systems import Seed
from dsimages.buildah import Workshop

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        bool(missing_tools()), reason=f"making RPMs needs {', '.join(missing_tools())}"
    ),
]
DRIVER = RpmDriver()


@pytest.fixture(scope="module")
def at(engine) -> Workshop:
    return workshop(engine)


@pytest.fixture(scope="module")
def debian(at) -> PackageOrder:
    return debian_order(at)


@pytest.fixture(scope="module")
def image(at, debian) -> Image:
    return rpm_system(at, debian)


@pytest.fixture(scope="module")
def srpm(at, debian) -> Path:
    return kept_srpm(at, debian)


@pytest.fixture(scope="module")
def source(at, image, srpm) -> SourcePackage:
    return srpm_source(at, image, SrpmSource(location=str(srpm)))


@pytest.fixture(scope="module")
def tree(at, image, source) -> Tree:
    plain = PackageOrder(row=ROW, image=image, source=source)
    return DRIVER.source_tree(at, plain, DRIVER.toolset(at, plain, progress=print))


@pytest.fixture(scope="module")
def patched(at, image, source, tree) -> Build:
    order = PackageOrder(
        row=ROW, image=image, source=source, patches=(other_scheme(tree),)
    )  # fmt: skip
    return build_packages(DRIVER, at, order, progress=print)


def test_the_srpm_is_taken_apart(source, tree):
    assert source.control == "389-ds-base.spec"
    assert (source.name, source.version) == ("389-ds-base", f"{VERSION}-3")
    assert "%autosetup -p1" in source.control_text
    assert "AC_INIT" in (tree.read("configure.ac") or "")


def test_what_is_no_srpm_is_refused(at, image, tmp_path):
    wrong = tmp_path / "wrong.src.rpm"
    wrong.write_text("no package\n")
    with pytest.raises(SourceError, match=r"wrong\.src\.rpm is not a source RPM"):
        srpm_source(at, image, SrpmSource(location=str(wrong)))


def test_built_installed_by_dnf_served_and_measured(engine, at, image, patched):
    assert patched.provenance.driver is DriverName.RPM
    assert (Path(patched.folder) / PACKAGES / "repodata" / "repomd.xml").is_file()
    own = installed(at, image, patched, ROW, progress=print)
    assert "389-ds-base" not in image.packages
    assert own.packages["389-ds-base"] == f"{VERSION}-3.dsbisect1"
    assert own.packages["389-ds-base-libs"] == f"{VERSION}-3.dsbisect1", "as it is required"

    seed = Seed(content=DirectoryContent(number=20), settings=Settings(id="default"))
    golden = golden_state(engine, own, ROW.system, seed, progress=print)
    assert patched.promise.asked_of(golden.facts)
    assert patched.promise.broken_by(golden.facts) is None
    workload = MATRIX.workloads[0].model_copy(update={"users": 20, "distinct_users": 20})
    with benched(engine, golden) as bench:
        sample = take_sample(bench, turn_of(workload))
    assert sample.operations > 0
    assert sample.facts == golden.facts


def test_a_patch_that_does_not_fit_is_refused_with_its_hunk(at, image, source, tree):
    order = PackageOrder(row=ROW, image=image, source=source, patches=(misfit(tree),))
    with pytest.raises(EditError, match=r"misfit\.patch does not fit") as caught:
        build_packages(DRIVER, at, order, progress=print)
    assert "of another time" in caught.value.message
