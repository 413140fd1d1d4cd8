"""Orders, keys, and what is installed of a build: pure parts of the package drivers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from goldens import assert_golden
from rows import APT, row_of

from dsbuilds import build_cache
from dsbuilds.drivers.deb import DebDriver
from dsbuilds.drivers.package_build import (
    INDEX,
    PACKAGES,
    PackageOrder,
    index_of,
    order_key,
    packages_build,
    provenance_of,
)
from dsbuilds.drivers.package_image import (
    check_installed,
    chosen_packages,
    confined,
    containerfile,
    script,
)
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.edits.edit import Patch
from dsbuilds.sandbox.sandbox import unbuildable
from dsbuilds.sources.source_package import SourcePackage, refusal
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.engine import Engine
from dsharness.errors import (
    BuildError,
    DeadlineError,
    ImageError,
    RefusedError,
    SourceError,
)
from dsharness.model import Build, DriverName, Family, Image, Provenance
from dsharness.process.command import Completed
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop

SERVER = "389-ds-base"
IMAGE = Image(
    candidate_id="toy-apt", reference="r", key="k", packages={"389-ds-base": "1", "a": "1"}
)
SOURCE = SourcePackage(
    name="389-ds-base", version="1", folder=Path("/nowhere"), control="a.dsc", identity="i",
    origin="here",
)  # fmt: skip
ORDER = PackageOrder(row=row_of(APT), image=IMAGE, source=SOURCE)
SHOP = ToolchainImage(id="s", reference="s", key="s", runtime=IMAGE, tools={"gcc": "14"})
PATCH = Patch(name="a.patch", title="t", text="--- a\n")


ENGINE = Engine(
    podman_version="5", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip


@pytest.fixture
def at(tmp_path, monkeypatch) -> Workshop:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    return Workshop(engine=ENGINE, deadline=Deadline.after(60), log=tmp_path / "log")


def made(log: Path) -> Provenance:
    return provenance_of(
        ORDER, DriverName.DEB,
        tree="t", toolchain="s", tools={}, flags=(), seconds=1.26, log=log,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("driver", "order", "toolset"),
    [
        (RpmDriver(), ORDER, SHOP),
        (RpmDriver(flags=("--without", "cockpit")), ORDER, SHOP),
        (DebDriver(), replace(ORDER, source=replace(SOURCE, identity="j")), SHOP),
        (DebDriver(), replace(ORDER, patches=(PATCH,)), SHOP),
        (DebDriver(), replace(ORDER, patches=(replace(PATCH, text="--- b\n"),)), SHOP),
        (DebDriver(), replace(ORDER, patches=(replace(PATCH, name="b.patch"),)), SHOP),
        (DebDriver(), replace(ORDER, clean=True), SHOP),
        (DebDriver(), ORDER, replace(SHOP, key="t")),
    ],
)
def test_all_that_decides_what_comes_out_is_in_the_key(driver, order, toolset):
    assert order_key(driver, order, toolset) != order_key(DebDriver(), ORDER, SHOP)


def test_a_build_does_not_depend_on_where_its_source_lies():
    moved = replace(ORDER, source=replace(SOURCE, folder=Path("/elsewhere")))
    assert order_key(DebDriver(), moved, SHOP) == order_key(DebDriver(), ORDER, SHOP)


def fill(target: Path, *lines: str) -> None:
    target.mkdir(parents=True)
    (target / INDEX).write_text("".join(f"{line}\n" for line in lines))


def test_a_build_is_made_once_and_whole(at):
    calls = []

    def make(target: Path) -> Provenance:
        calls.append(target)
        fill(target, "389-ds-base\t2\tb.deb")
        if len(calls) == 1:
            raise BuildError("cut short")
        return made(at.log)

    with pytest.raises(BuildError):
        packages_build(at, ORDER, "key", make)
    assert build_cache.find("key") is None
    first = packages_build(at, ORDER, "key", make)
    assert first.packages == ("b.deb",)
    assert first.provenance.seconds == 1.3
    assert packages_build(at, ORDER, "key", make) == first
    assert len(calls) == 2
    assert not calls[0].exists()


@pytest.mark.parametrize(
    ("said", "tries"),
    [
        ("dsbisect-stage\tbuild\na.c:1:2: error: wrong\n", 1),
        ("dsbisect-stage\tbuild\ncc1: Cannot allocate memory\n", 2),
        ("the container did not start\n", 2),
    ],
)
def test_only_what_the_source_is_to_blame_for_is_remembered(at, said, tries):
    calls = []

    def make(target: Path) -> Provenance:
        calls.append(target)
        raise unbuildable(said, at.log)

    for _ in range(2):
        with pytest.raises(BuildError):
            packages_build(at, ORDER, "key", make)
    assert len(calls) == tries


def build_of(folder: Path, *lines: str) -> Build:
    fill(folder / PACKAGES, *lines)
    return Build(key="k", folder=str(folder), content="c", provenance=made(folder / "log"))


def test_what_the_image_had_is_replaced_and_nothing_more(tmp_path):
    build = build_of(tmp_path, "b\t2\tb.deb", "389-ds-base\t2\tc.deb", "a\t2\ta.deb", "no")
    assert chosen_packages(IMAGE, build, SERVER) == {"389-ds-base": "2", "a": "2"}


def test_the_server_comes_where_there_was_none(tmp_path):
    build = build_of(tmp_path, "389-ds-base\t2\tc.deb", "b\t2\tb.deb")
    bare = IMAGE.model_copy(update={"packages": {}})
    assert chosen_packages(bare, build, SERVER) == {"389-ds-base": "2"}


def test_a_build_without_a_server_is_refused(tmp_path):
    with pytest.raises(BuildError, match="made no 389-ds-base, but b"):
        chosen_packages(IMAGE, build_of(tmp_path, "b\t2\tb.deb"), SERVER)


@pytest.mark.parametrize(
    "line", ["-o=x\t1\ta.deb", "a\t1 2\ta.deb", "a\t*\ta.deb", "a\t1\t../a.deb", "a\x1b\t1\ta"]
)
def test_an_installer_is_told_names_and_nothing_else(tmp_path, line):
    with pytest.raises(BuildError, match="names something that is not a package"):
        chosen_packages(IMAGE, build_of(tmp_path, "389-ds-base\t2\tc.deb", line), SERVER)


def test_what_was_built_is_installed_without_a_network(tmp_path):
    for family in Family:
        fetch, *_ = script(family, "fetch", {"a": "1"})
        assert "download" in fetch
        assert "only" in fetch
    assert confined(tmp_path).network == "none"


def test_no_index_is_no_package(tmp_path):
    assert index_of(tmp_path) == []


@pytest.mark.parametrize(
    ("family", "command"),
    [
        (Family.APT, '"389-ds-base=1:3.1.2-1+dsbisect1", "python3-lib389=3"]'),
        (Family.DNF, '"389-ds-base-1:3.1.2-1+dsbisect1", "python3-lib389-3"]'),
        (Family.EL8, '"389-ds-base-1:3.1.2-1+dsbisect1", "python3-lib389-3"]'),
    ],
)
def test_packages_are_installed_by_exact_version(family, command):
    chosen = {"389-ds-base": "1:3.1.2-1+dsbisect1", "python3-lib389": "3"}
    text = containerfile(*script(family, "install", chosen))
    lines = text.splitlines()
    assert lines[:2] == ["ARG BASE", "FROM ${BASE}"]
    assert len(lines) == 3, "the script is one word"
    assert lines[2].endswith(command)


def test_a_script_is_one_word_of_the_containerfile():
    assert_golden("packages/containerfile", containerfile('#!/bin/sh\necho "$1" \\\n  é\n', "a b"))


def test_another_version_in_the_image_is_an_error(tmp_path):
    check_installed({"a": "2"}, {"a": "2", "b": "1"}, tmp_path)
    with pytest.raises(ImageError, match="a 2 was built, but 1 is installed"):
        check_installed({"a": "2"}, {"a": "1"}, tmp_path)
    with pytest.raises(ImageError, match="a 2 was built, but none is installed"):
        check_installed({"a": "2"}, {}, tmp_path)


@pytest.mark.parametrize(
    ("said", "timed_out", "kind", "words"),
    [
        ("E: Failed to fetch http://a.invalid/b  404  Not Found", False, RefusedError, "404"),
        ("W: x\nE: Unable to find a source package for c", False, SourceError, "E: Unable to find"),
        ("", True, DeadlineError, "timed out"),
        ("", False, SourceError, "no output"),
    ],
)
def test_why_a_source_cannot_be_had(tmp_path, said, timed_out, kind, words):
    done = Completed(argv=("apt",), status=100, stdout="", stderr=said, timed_out=timed_out)
    error = refusal(done, "the source c", tmp_path)
    assert type(error) is kind
    assert words in error.message
    assert error.hint
