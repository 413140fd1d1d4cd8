"""mock for real, by a user of its group on a machine with systemd; the container makes the same."""

from __future__ import annotations

import functools
import hashlib
import http.server
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from changes import patch_of
from rows import DNF, row_of
from rpm_world import missing_tools, rpm_world
from shipped import MATRIX

from dsbuilds.drivers.mock import MockDriver
from dsbuilds.drivers.package_build import (
    PackageDriver,
    PackageOrder,
    build_packages,
    index_of,
    repository_of,
)
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.sources.source_package import SourcePackage, spec_package
from dsharness.containers.engine import Engine
from dsharness.doctor.machine_checks import read_mock
from dsharness.errors import DeadlineError, StoppedError, UnreachableError
from dsharness.model import Build, DriverName
from dsharness.paths import logs_home
from dsharness.process.command import go_on, stop_all
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop
from dsimages.image_set import build_image

PROBLEM = read_mock()
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        bool(missing_tools()), reason=f"making RPMs needs {', '.join(missing_tools())}"
    ),
    pytest.mark.skipif(PROBLEM is None, reason="mock is not installed"),
    pytest.mark.skipif(bool(PROBLEM), reason=f"mock cannot be used: {PROBLEM}"),
]
MAIN = "ldap/servers/slapd/main.c"
FILES = {"configure.ac": "AC_INIT\n", MAIN: "one\ntwo\nthree\n"}  # by which 389-ds is known
SPEC = """\
Name: 389-ds-base
Version: 1
Release: 1
Summary: s
License: MIT
BuildArch: noarch
Source0: toy.tar
BuildRequires: make
%description
d
%package libs
Summary: s
%description libs
d
%prep
%autosetup -p1 -n toy
%build
ls /sys/class/net >networks
cut -d: -f1 -s /proc/net/dev | tr -d ' ' >>networks
{build}
%install
mkdir -p %{{buildroot}}/opt %{{buildroot}}/etc
cp {main} networks %{{buildroot}}/opt/
touch %{{buildroot}}/etc/libs
%files
/opt/main.c
/opt/networks
%files libs
/etc/libs
"""
SLEEP = "sleep 987654"


@pytest.fixture(scope="module")
def site() -> Iterator[http.server.ThreadingHTTPServer]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    handler = functools.partial(Handler, directory=str(rpm_world()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def at(engine: Engine) -> Workshop:
    log = logs_home() / "builds" / "test-mock.log"
    return Workshop(engine=engine, deadline=Deadline.after(1200), log=log)


@pytest.fixture(scope="module")
def world(
    engine: Engine, site: http.server.ThreadingHTTPServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PackageOrder]:
    """The toy distribution as a row; an order for it that builds."""
    folder = tmp_path_factory.mktemp("mock")
    url = f"http://127.0.0.1:{site.server_address[1]}/main/"
    base = {
        "kind": "bootstrap", "tool": "dnf", "suite": "1", "include": ["toy-system"],
        "repositories": {"main": f"{rpm_world().as_uri()}/main/"}, "unsigned": True,
    }  # fmt: skip
    packages = {
        "kind": "dnf", "repositories": {"main": url}, "unsigned": True, "plain_http": True,
    }  # fmt: skip
    row = row_of(DNF, id="toy-mock", base=base, packages=packages)
    matrix = MATRIX.model_copy(update={"file": folder / "matrix.yaml"})
    image = build_image(engine, matrix, row, on_progress=print)
    yield PackageOrder(row=row, image=image, source=source_in(folder, "true"))
    ours = engine.images("--quiet", "--no-trunc", "--filter", "label=dsbisect.row=toy-mock")
    for reference in dict.fromkeys(ours.split()):
        engine.podman("rmi", "--force", reference)


def source_in(folder: Path, build: str) -> SourcePackage:
    made = folder / f"source-{abs(hash(build))}"
    made.mkdir()
    with tarfile.open(made / "toy.tar", "w") as tar:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"toy/{name}")
            member.size = len(text)
            tar.addfile(member, BytesIO(text.encode()))
    (made / "389-ds-base.spec").write_text(SPEC.format(build=build, main=MAIN))
    return spec_package(made, "389-ds-base-1-1.src.rpm")


@pytest.fixture
def other(world: PackageOrder, tmp_path: Path) -> Callable[..., PackageOrder]:
    """An order with another %build."""

    def of(build: str, time_s: float = 600) -> PackageOrder:
        limits = Limits(time_s=time_s)
        return replace(world, source=source_in(tmp_path, build), limits=limits)

    return of


def contents(build: Build) -> dict[str, list[str]]:
    """Of each package: what it is, its files with their kinds and contents, what it needs."""
    files = "[%{FILEMODES:perms} %{FILENAMES} %{FILEDIGESTS}\\n]"
    form = f"%{{NEVRA}}\\n{files}[%{{REQUIRENEVRS}}\\n][%{{CHANGELOGTEXT}}\\n]"
    return {
        name: subprocess.run(
            ["rpm", "-qp", "--nosignature", "--qf", form, str(repository_of(build) / file)],
            check=True, capture_output=True, text=True,
        ).stdout.splitlines()
        for name, _, file in index_of(repository_of(build))
    }  # fmt: skip


def test_mock_makes_the_container_s_packages_without_a_network(
    at: Workshop, world: PackageOrder
) -> None:
    rpm: PackageDriver = RpmDriver()
    tree = rpm.source_tree(at, world, rpm.toolset(at, world, progress=print))
    order = replace(world, patches=(patch_of(tree, "two.patch", MAIN, "two", "zwei"),))
    by_container, by_mock = (
        build_packages(driver, at, order, progress=print) for driver in (rpm, MockDriver())
    )
    assert by_mock.key != by_container.key
    assert by_mock.provenance.driver is DriverName.RPM
    assert by_mock.provenance.toolchain.startswith("mock ")
    assert contents(by_mock) == contents(by_container)
    assert set(contents(by_mock)) == {"389-ds-base", "389-ds-base-libs"}
    for name, text in ((MAIN, "one\nzwei\nthree\n"), ("networks", "lo\nlo\n")):
        line = f"/opt/{Path(name).name} {hashlib.sha256(text.encode()).hexdigest()}"
        assert any(each.endswith(line) for each in contents(by_mock)["389-ds-base"]), line


def test_what_does_not_compile_says_so_in_rpmbuild_s_words(
    at: Workshop, other: Callable[..., PackageOrder]
) -> None:
    order = other("echo 'main.c:2:1: error: no such thing' >&2; exit 1")
    with pytest.raises(UnbuildableError, match="no such thing") as caught:
        build_packages(MockDriver(), at, order, progress=print)
    assert caught.value.lasting


def left() -> list[str]:
    """What a build left running, and its chroots."""
    running = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if SLEEP.split()[1].encode() in path.read_bytes().split(b"\0")
    ]
    return [*running, *(path.name for path in Path("/var/lib/mock").glob("dsbisect-toy-mock-*"))]


def test_a_deadline_ends_it_with_all_that_it_started(
    at: Workshop, other: Callable[..., PackageOrder]
) -> None:
    order = other(SLEEP, time_s=45)
    with pytest.raises(DeadlineError, match="over 1 minutes"):
        build_packages(MockDriver(), at, order, progress=print)
    assert left() == []


def test_a_ctrl_c_ends_it_with_all_that_it_started(
    at: Workshop, other: Callable[..., PackageOrder]
) -> None:
    caught: list[BaseException] = []

    def build() -> None:
        try:
            build_packages(MockDriver(), at, other(f"{SLEEP} # again"), progress=print)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
            caught.append(error)

    thread = threading.Thread(target=build)
    thread.start()
    deadline = Deadline.after(120)
    while not any(name.isdigit() for name in left()) and not deadline.passed:
        time.sleep(0.2)
    try:
        stop_all()
        thread.join(timeout=60)
    finally:
        go_on()
    assert [type(error) for error in caught] == [StoppedError]
    assert left() == []


def test_repositories_that_do_not_answer_are_no_fault_of_the_source(
    at: Workshop, other: Callable[..., PackageOrder], site: http.server.ThreadingHTTPServer
) -> None:
    order = other("true # once more")
    driver = MockDriver()
    driver.toolset(at, order, progress=print)
    site.shutdown()
    site.server_close()
    with pytest.raises(UnreachableError, match="mock's chroot"):
        build_packages(driver, at, order, progress=print)
