"""What was built is installed apart from the network: its own scripts run then."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from benches import MATRIX, image_of

from dsbuilds.drivers.package_build import INDEX, PACKAGES
from dsbuilds.drivers.package_image import installed
from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError
from dsharness.model import Build, DriverName, Image, Provenance
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop

pytestmark = pytest.mark.whole

ROW = MATRIX.row("debian-13")
VERSION = "9.9-1"
NEEDED = "hello"  # small, and not in the image
CONTROL = f"""\
Package: 389-ds-base
Version: {VERSION}
Architecture: all
Maintainer: nobody <nobody@example.org>
Depends: {NEEDED}
Description: a server that wants to tell somebody
"""
SCRIPT = "#!/bin/sh\nls /sys/class/net >/seen-network\nid -u >/seen-user\n"
FORKS = "#!/bin/sh\nfor i in $(seq 200); do sleep 20 & done\n"


@pytest.fixture
def image(engine: Engine) -> Image:
    return image_of(engine, ROW.id)


@pytest.fixture
def made(engine: Engine, image: Image, tmp_path: Path, request: pytest.FixtureRequest) -> Build:
    """A package made by hand, in a repository as a build leaves it."""
    package, out = tmp_path / "package" / "DEBIAN", tmp_path / "build" / PACKAGES
    for folder in (package, out):
        folder.mkdir(parents=True)
    (package / "control").write_text(CONTROL)
    (package / "postinst").write_text(getattr(request, "param", SCRIPT))
    (package / "postinst").chmod(0o755)
    options = Options(volumes=((tmp_path / "package", "/in", "ro"), (out, "/out", "rw")))
    with running(
        engine, image.reference, "sleep", "infinity",
        purpose="test-deb", log=tmp_path / "log", options=options,
    ) as box:  # fmt: skip
        box.must("dpkg-deb", "--root-owner-group", "--build", "/in", "/out/a.deb", what="make it")
    deb = (out / "a.deb").read_bytes()
    (out / "Packages").write_text(
        f"{CONTROL}Filename: ./a.deb\nSize: {len(deb)}\nSHA256: {hashlib.sha256(deb).hexdigest()}\n"
    )
    (out / INDEX).write_text(f"389-ds-base\t{VERSION}\ta.deb\n")
    provenance = Provenance(
        driver=DriverName.DEB, source="by hand", tree="t", toolchain="none", clean=True, seconds=0,
        built_at="2026-01-01T00:00:00+00:00", log=str(tmp_path / "log"),
    )  # fmt: skip
    content = hashlib.sha256(f"{tmp_path}".encode()).hexdigest()[:16]
    return Build(key=content, folder=str(out.parent), content=content, provenance=provenance)


def test_its_scripts_see_no_network_and_what_it_needs_is_there(
    engine: Engine, image: Image, made: Build
) -> None:
    assert NEEDED not in image.packages
    log = logs_home() / "builds" / "test-installing.log"
    at = Workshop(engine=engine, deadline=Deadline.after(600), log=log)
    own = installed(at, image, made, ROW, progress=print)
    try:
        assert own.packages["389-ds-base"] == VERSION
        assert NEEDED in own.packages
        with running(
            engine, own.reference, "sleep", "infinity", purpose="test-deb", log=log
        ) as box:
            assert box.must("cat", "/seen-network", what="look").split() == ["lo"]
            assert box.must("cat", "/seen-user", what="look").strip() == "0"
            left = box.must("find", "/etc/apt", "-name", "*dsbisect-built*", what="look")
            assert left == ""
    finally:
        engine.podman("rmi", "--force", own.reference, cleanup=True)


@pytest.mark.parametrize("made", [FORKS], indirect=True)
def test_its_scripts_start_processes_without_end(
    engine: Engine, image: Image, made: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not engine.limits_memory:
        pytest.skip("this engine bounds nothing")
    monkeypatch.setattr("dsharness.containers.container.PROCESSES", 64)
    log = logs_home() / "builds" / "test-installing.log"
    at = Workshop(engine=engine, deadline=Deadline.after(600), log=log)
    log.unlink(missing_ok=True)
    with pytest.raises(CandidateError):
        installed(at, image, made, ROW, progress=print)
    assert "fork" in log.read_text(encoding="utf-8")
