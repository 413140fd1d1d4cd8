"""What mock is configured with, and what its logs say of a failure."""

from __future__ import annotations

import platform
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from rows import DNF, row_of

from dsbuilds.build_request import check_build
from dsbuilds.drivers.mock import CONFINED, MockDriver, configuration, failed_build, root_errors
from dsbuilds.drivers.package_build import PackageOrder, order_key
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.failure_reason import cause_of, passing, stage_of
from dsbuilds.sources.source_package import SourcePackage
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.errors import BuildError, MatrixError, ToolMissingError
from dsharness.model import BuildSpec, DriverName, Image, RpmBuilder

ROW = row_of(DNF)
IMAGE = Image(candidate_id=ROW.id, reference="r", key="k")
SOURCE = SourcePackage(
    name="toy", version="1", folder=Path("/nowhere"), control="toy.spec", identity="i",
    origin="here",
)  # fmt: skip
ORDER = PackageOrder(row=ROW, image=IMAGE, source=SOURCE)
TOOLSET = ToolchainImage(id="s", reference="s", key="s", runtime=IMAGE, tools={"gcc": "14"})
FEDORA = """\
[fedora]
name=Fedora $releasever
metalink=https://mirrors.invalid/metalink?repo=fedora-$releasever&arch=$basearch
#baseurl=http://example.invalid/
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-fedora-$releasever-$basearch
    https://keys.invalid/b
pluginpath=/tmp
[fedora-debuginfo]
enabled=0
baseurl=http://example.invalid/debug
[main]
pluginpath=/tmp
"""
SECOND_KEY = "https://keys.invalid/b"
BUILD_LOG = """\
Mock Version: 6.3
Using nspawn with args ['--capability=cap_ipc_lock']
Executing command: ['/usr/bin/systemd-nspawn', 'rpmbuild -bb'] with env {} and shell False
main.c:2:1: error: expected ';' before '}' token
RPM build errors:
error: Bad exit status from /var/tmp/rpm-tmp.x (%build)
Child return code was: 1
"""
ROOT_LOG = """\
DEBUG util.py:557:  Executing command: ['/usr/bin/dnf-3', 'builddep'] with env {} and shell False
DEBUG util.py:459:  Error:
DEBUG util.py:459:   Problem: nothing provides toy-devel >= 7
DEBUG util.py:609:  Child return code was: 1
"""


def configured(folder: Path) -> dict[str, Any]:
    """The options as mock has them after it has read the file."""
    options: dict[str, Any] = defaultdict(dict)
    exec(configuration("a-root", ROW, folder), {"config_opts": options})
    return options


def test_a_configuration_is_pinned_and_has_the_row_s_repositories(tmp_path: Path) -> None:
    (tmp_path / "fedora.repo").write_text(FEDORA)
    (tmp_path / "os-release").write_text('ID=fedora\nPLATFORM_ID="platform:f34"\n')
    options = configured(tmp_path)
    assert (options["root"], options["releasever"]) == ("a-root", ROW.os.version)
    assert options["target_arch"] == platform.machine()
    assert options["macros"]["%debug_package"] == "%{nil}"
    main, _, repositories = options["dnf.conf"].partition("\n\n")
    assert main.splitlines()[-1] == "module_platform_id=platform:f34"
    assert repositories.splitlines() == [
        "[fedora]",
        "name=fedora",
        "metalink=https://mirrors.invalid/metalink?repo=fedora-$releasever&arch=$basearch",
        "gpgcheck=1",
        f"gpgkey={tmp_path.as_uri()}/RPM-GPG-KEY-fedora-$releasever-$basearch {SECOND_KEY}",
    ]
    assert CONFINED == ("--isolation=nspawn", "--config-opts=rpmbuild_networking=False")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[off]\nenabled=0\nbaseurl=http://example.invalid/\n",
        "[main]\npluginpath=/tmp\n",
        "[x]\nbaseurl={{ cycler.__init__.__globals__ }}\n",
        "no section\n",
        "[x]\nbaseurl=%(home)s{% x\n",
    ],
)
def test_what_an_image_says_of_its_repositories_runs_nowhere(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.repo").write_text(text)
    with pytest.raises(BuildError, match="toy-dnf: its image"):
        configured(tmp_path)


def test_a_quote_in_a_value_ends_no_line_of_the_configuration(tmp_path: Path) -> None:
    address = "http://x.invalid/'''\"\\"
    (tmp_path / "x.repo").write_text(f"[x]\nbaseurl={address}\n")
    assert f"baseurl={address}\n" in configured(tmp_path)["dnf.conf"]


def test_a_failed_build_says_why_in_the_words_of_its_tools() -> None:
    output = failed_build(BUILD_LOG)
    assert stage_of(output) == "build"
    assert not passing(output)
    assert cause_of(output) == "main.c:2:1: error: expected ';' before '}' token"
    assert "nspawn" not in output


def test_a_chroot_that_cannot_be_filled_is_not_the_build_s_failure() -> None:
    assert failed_build("") == failed_build("Mock Version: 6.3\n") == ""
    assert failed_build("Wrote: x.src.rpm\nChild return code was: 0\n") == ""
    assert root_errors(ROOT_LOG) == "Error:\n Problem: nothing provides toy-devel >= 7\n"
    assert root_errors("no error\n") == "no error\n"


def test_without_mock_it_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissingError, match="mock: it is not installed") as caught:
        order_key(MockDriver(), ORDER, TOOLSET)
    assert "dnf install mock" in caught.value.hint


def test_mock_s_packages_have_a_key_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [order_key(RpmDriver(), ORDER, TOOLSET)]
    monkeypatch.setattr("dsbuilds.drivers.mock.read_mock", lambda: "")
    for version in ("6.3", "6.4"):
        monkeypatch.setattr("dsbuilds.drivers.mock.read_version", lambda _, v=version: v)
        keys.append(order_key(MockDriver(), ORDER, TOOLSET))
    assert len(set(keys)) == 3
    assert type(MockDriver().again(RpmDriver().script)) is RpmDriver


def test_mock_builds_no_debs_and_no_trees(tmp_path: Path) -> None:
    for driver in (DriverName.DEB, DriverName.TREE):
        spec = BuildSpec(driver=driver, builder=RpmBuilder.MOCK)
        with pytest.raises(MatrixError, match=f"row: mock builds RPMs, and the driver is {driver}"):
            check_build(spec, "row", folder=tmp_path)
    check_build(BuildSpec(driver=DriverName.RPM, builder=RpmBuilder.MOCK), "row", folder=tmp_path)
