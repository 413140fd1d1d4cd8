"""Gate 1 for real, over a tiny server: built twice, linted, its libraries compared with stock's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import tiny_server
from benches import MATRIX, image_of
from rows import DNF, row_of
from rpm_debian import ROW_ID, rpm_debian
from rpm_world import missing_tools
from stock_image import with_stock
from validations import Tried, step_names, tools_of, tried

from dsbuilds.drivers.deb import DebDriver
from dsbuilds.drivers.package_build import (
    PackageOrder,
    build_packages,
    index_of,
    repository_of,
)
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sources.source_package import SourcePackage
from dsbuilds.toolchains.toolchain_image import toolset_of
from dsharness.containers.engine import Engine
from dsharness.errors import UsageError
from dsharness.model import Build, BuildSpec, DriverName, Image, Row, SrpmSource
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop
from dsvalidate.check import Check, Gate, Status
from dsvalidate.package_files import given_build
from dsvalidate.step_tools import stock_packages

OLD, NEW = "8", "9"
DEB_ROW = MATRIX.row("debian-13").model_copy(update={"id": "tiny-deb"})
RPM_ROW = row_of(DNF, id=ROW_ID, versions={"389-ds": NEW})


@dataclass(frozen=True, kw_only=True)
class World:
    """A row whose stock packages are the tiny server's older version."""

    row: Row
    stock: Image
    made: Build  # the stock packages


@pytest.fixture(scope="module")
def at(engine: Engine) -> Workshop:
    log = logs_home() / "builds" / "test-validate-builds.log"
    return Workshop(engine=engine, deadline=Deadline.after(2400), log=log)


@pytest.fixture(scope="module")
def deb(at: Workshop, tmp_path_factory: pytest.TempPathFactory) -> World:
    base = image_of(at.engine, "debian-13-bind")  # any that has no 389-ds
    source = tiny_server.deb_source(tmp_path_factory.mktemp("deb"), OLD)
    order = PackageOrder(row=DEB_ROW, image=base, source=source)
    made = build_packages(DebDriver(), at, order, progress=print)
    return World(row=DEB_ROW, stock=with_stock(at, "deb", "tiny-deb", base, made), made=made)


@pytest.fixture(scope="module")
def rpm(at: Workshop, tmp_path_factory: pytest.TempPathFactory) -> World:
    if missing_tools():
        pytest.skip(f"making RPMs needs {', '.join(missing_tools())}")
    toolchain = next(each for each in MATRIX.toolchains if each.id == "debian-13")
    base = rpm_debian(at, toolset_of(at.engine, MATRIX, toolchain, progress=print))
    source = tiny_server.rpm_source(tmp_path_factory.mktemp("rpm"), OLD)
    order = PackageOrder(row=RPM_ROW, image=base, source=source)
    made = build_packages(RpmDriver(), at, order, progress=print)
    return World(row=RPM_ROW, stock=with_stock(at, "rpm", "tiny-rpm", base, made), made=made)


@pytest.fixture
def of_world(
    request: pytest.FixtureRequest, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], Tried]:
    def of(kind: str, patch: str) -> Tried:
        world: World = request.getfixturevalue(kind)
        (tmp_path / "ours.patch").write_text(patch)
        if kind == "deb":
            source = tiny_server.deb_source(fresh(tmp_path / "new"), NEW)
            monkeypatch.setattr("dsbuilds.built_row.distribution_source", offering(source))
            spec = BuildSpec(driver=DriverName.DEB, patches=(str(tmp_path / "ours.patch"),))
        else:
            made = tiny_server.srpm_file(fresh(tmp_path / "new"), NEW)
            spec = BuildSpec(
                driver=DriverName.RPM, source=SrpmSource(location=str(made)),
                patches=(str(tmp_path / "ours.patch"),),
            )  # fmt: skip
        patched = world.row.model_copy(update={"id": f"{world.row.id}-ours", "build": spec})
        tools = tools_of(engine, world.row, patched.id)
        return tried(world.row, patched, tools, tmp_path / "report", stock=world.stock)

    return of


def offering(source: SourcePackage) -> Callable[..., SourcePackage]:
    return lambda *_, **__: source


def fresh(folder: Path) -> Path:
    folder.mkdir()
    return folder


def found(made: Tried, *names: str) -> dict[str, Check]:
    """The checks of these steps, by name; each as the page will print it."""
    checks = made.found(*(names or step_names(Gate.BUILDS)))
    for check in checks.values():
        sys.stdout.write(f"{check.status}: {check.name}: {check.found}\n  {check.advice}\n")
        sys.stdout.writelines(f"    {line}\n" for line in check.details)
    return checks


@pytest.mark.parametrize("kind", ["deb", pytest.param("rpm", marks=pytest.mark.whole)])
def test_a_harmless_patch_passes(of_world, kind: str) -> None:
    made = of_world(kind, tiny_server.HARMLESS)
    checks = found(made)
    assert {name: check.status for name, check in checks.items()} == dict.fromkeys(
        ("package", "changelog", "version", "lint", "abi", "plugin-abi", "linked-libraries",
         "reproducible"),
        Status.PASSED,
    )  # fmt: skip
    assert "with ours.patch" in checks["package"].found
    assert "names ours.patch" in checks["changelog"].found
    assert checks["reproducible"].figures["packages_that_differ"] == 0


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["deb", pytest.param("rpm", marks=pytest.mark.whole)])
def test_a_harmful_patch_is_caught_three_times(of_world, kind: str) -> None:
    made = of_world(kind, tiny_server.HARMFUL)
    checks = found(made)

    differs = checks["reproducible"]
    assert differs.status is Status.WARNED
    assert "libplain-plugin.so" in differs.found
    assert "-ffile-prefix-map" in differs.advice, "the build's path is in it"
    assert (made.evidence.folder / Path(differs.evidence[0]).name).stat().st_size > 0

    lint = checks["lint"]
    assert lint.status is Status.FAILED
    assert "/opt/lib" in "\n".join(lint.details), "the tool's own line"

    abi = checks["abi"]
    assert abi.status is Status.FAILED
    assert abi.found.startswith("libslapd.so.0.1.0 lost slapi_two.")
    assert "SONAME" in abi.advice
    assert checks["plugin-abi"].figures["added"] == 1


@pytest.mark.whole
def test_a_source_that_builds_only_at_its_place(of_world) -> None:
    here = "all: libslapd"
    patch = tiny_server.patch({"Makefile": (here, f"all: /build/source/slapi.c {here[5:]}")})
    checks = found(of_world("deb", patch), "reproducible")
    assert checks["reproducible"].status is Status.FAILED
    assert "No rule to make target '/build/source/slapi.c'" in checks["reproducible"].found


@pytest.mark.whole
def test_stock_packages_are_fetched_once_in_the_installed_version(of_world, deb: World) -> None:
    made = of_world("deb", tiny_server.HARMLESS)
    folder = stock_packages(made.sides, made.tools)
    assert {(name, version) for name, version, _ in index_of(folder)} == {
        (name, deb.stock.packages[name]) for name in ("389-ds-base", "389-ds-base-libs")
    }
    made.tools.progress = pytest.fail
    assert stock_packages(made.sides, made.tools) == folder


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["deb", pytest.param("rpm", marks=pytest.mark.whole)])
def test_packages_that_are_given(
    request: pytest.FixtureRequest, engine: Engine, tmp_path: Path, kind: str
) -> None:
    world: World = request.getfixturevalue(kind)
    files = tuple(sorted(repository_of(world.made).glob(f"*.{kind}")))
    row = world.row.model_copy(update={"id": "given"})
    tools = tools_of(engine, world.row, row.id)
    made = tried(world.row, row, tools, tmp_path, stock=world.stock, packages=files)
    checks = found(made)
    assert checks["reproducible"].status is Status.NOT_RUN
    assert checks["version"].status is Status.FAILED, "they are the stock packages"
    assert checks["lint"].status is checks["abi"].status is Status.PASSED
    assert made.sides.patched.packages["389-ds-base"] == world.stock.packages["389-ds-base"]


def test_given_files_that_are_no_packages(
    deb: World, engine: Engine, at: Workshop, tmp_path: Path
) -> None:
    tools = tools_of(engine, DEB_ROW, "given").image
    (libs,) = repository_of(deb.made).glob("389-ds-base-libs_*.deb")
    with pytest.raises(UsageError, match=r"389-ds-base is not among 389-ds-base-libs"):
        given_build(at, tools, (libs,), DEB_ROW)
    broken = tmp_path / "389-ds-base_9_amd64.deb"
    broken.write_bytes(libs.read_bytes()[:100])
    with pytest.raises(
        UsageError, match=r"a package cannot be read: .*389-ds-base_9_amd64"
    ) as told:
        given_build(at, tools, (broken,), DEB_ROW)
    assert told.value.hint
