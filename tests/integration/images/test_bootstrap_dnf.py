"""dnf families for real: a tiny RPM distribution, bootstrapped, built on and pulled."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import DNF, row_of
from rpm_world import missing_tools, rpm_world
from toy_registry import Registry, serving

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.errors import MatrixError, PackageError, UnreachableError
from dsharness.matrix import load_matrix
from dsharness.model import Image, Matrix, Row
from dsharness.products import notable_versions
from dsimages.image_set import build_image
from dsimages.matrix_lock import MatrixLock

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        bool(missing_tools()),
        reason=f"making a toy distribution needs {', '.join(missing_tools())}",
    ),
]
TRUST = {"unsigned": True, "plain_http": True}  # of a distribution that lives for one test
MATRIX = Path(__file__).parents[3] / "matrix.yaml"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    found = detect()
    yield found
    for row in ("toy-dnf", "toy-koji", "toy-el8", "toy-freeipa"):
        # The label is inherited: what was built on a pulled toy image goes as well.
        ours = found.images("--quiet", "--no-trunc", "--filter", f"label=dsbisect.row={row}")
        for image in dict.fromkeys(ours.split()):
            found.podman("rmi", "--force", image)


@pytest.fixture(scope="module")
def world() -> Path:
    return rpm_world()


@pytest.fixture(scope="module")
def site(world) -> Iterator[str]:
    """The same folder over HTTP, for what runs inside a build."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    handler = functools.partial(Handler, directory=str(world))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def matrix(tmp_path) -> Matrix:
    return load_matrix(MATRIX).model_copy(update={"file": tmp_path / "matrix.yaml"})


@pytest.fixture
def base(world) -> dict[str, object]:
    return {
        "kind": "bootstrap",
        "tool": "dnf",
        "suite": "1",
        "repositories": {"main": f"{world.as_uri()}/main/"},
        "include": ["toy-system"],
        "unsigned": True,
    }


def build(engine: Engine, matrix: Matrix, row: Row, **how: bool) -> Image:
    return build_image(engine, matrix, row, on_progress=lambda _: None, **how)


def installed(engine: Engine, image: Image, package: str) -> str:
    return engine.must(
        "run", "--rm", "--network", "none", image.reference, "cat", f"/usr/share/toy/{package}"
    )


@pytest.fixture
def dnf_row(base, site) -> Row:
    packages = {"kind": "dnf", "repositories": {"main": f"{site}/main/"}, **TRUST}
    return row_of(DNF, base=base, packages=packages, pins={"nss": "3.63"})


def test_bootstrapped_and_installed_in_the_version_asked_for(engine, matrix, dnf_row):
    image = build(engine, matrix, dnf_row)
    assert notable_versions(image) == {"389-ds": "2.0.15-1.toy", "nss": "3.63-1.toy"}
    assert installed(engine, image, "389-ds-base") == "2.0.15"
    locked = MatrixLock.of_matrix(matrix.file).read(dnf_row)
    assert locked.packages == {"389-ds-base": "2.0.15-1.toy", "nss": "3.63-1.toy"}
    assert build(engine, matrix, dnf_row) == image


def test_scripts_of_packages_get_no_power_over_this_machine(engine, matrix, dnf_row):
    image = build(engine, matrix, dnf_row)
    listed = engine.must("run", "--rm", "--network", "none", image.reference, "ls", "/var/lib/toy")
    assert listed.split() == ["confined"]  # it could make no device


def test_packages_are_not_taken_unsigned_without_a_word(engine, matrix, dnf_row):
    trusting = dnf_row.packages.model_copy(update={"unsigned": False})
    row = dnf_row.model_copy(update={"packages": trusting, "id": "toy-trusting"})
    with pytest.raises(PackageError, match="no key in the image for main") as caught:
        build(engine, matrix, row)
    assert "unsigned: true" in caught.value.hint
    base = dnf_row.base.model_copy(update={"unsigned": False})
    with pytest.raises(MatrixError, match="no key is known"):
        build(engine, matrix, dnf_row.model_copy(update={"base": base, "id": "toy-trusting"}))


def test_version_that_nobody_has(engine, matrix, dnf_row):
    row = dnf_row.model_copy(update={"pins": {"nss": "3.99"}})
    with pytest.raises(PackageError) as caught:
        build(engine, matrix, row)
    assert "package nss: wanted 3.99; available: 3.63-1.toy" in caught.value.message
    assert caught.value.log.exists()


def test_drift_from_the_lock_is_refused_until_relocked(engine, matrix, dnf_row):
    image = build(engine, matrix, dnf_row)
    lock = MatrixLock.of_matrix(matrix.file)
    locked = lock.read(dnf_row)
    packages = locked.packages | {"389-ds-base": "2.0.15-0.toy"}
    lock.write(dnf_row, locked.model_copy(update={"packages": packages}))
    with pytest.raises(PackageError) as caught:
        build(engine, matrix, dnf_row)
    assert "wanted 2.0.15-0.toy; available: 2.0.16-1.toy, 2.0.15-1.toy" in caught.value.message
    assert "--relock" in caught.value.hint
    assert build(engine, matrix, dnf_row, relock=True).packages == image.packages
    assert lock.read(dnf_row) == locked


def test_koji_build_by_its_nvr(engine, matrix, base, site):
    packages = {
        "kind": "koji",
        "nvr": "389-ds-base-2.0.17-1.toy",
        "rpms": ["389-ds-base", "python3-lib389"],
        "url": f"{site}/packages",
        "repositories": {"main": f"{site}/main/"},
        **TRUST,
    }
    row = row_of(DNF, id="toy-koji", base=base, packages=packages, versions={"389-ds": "2.0.17"})
    image = build(engine, matrix, row)
    assert image.packages["389-ds-base"] == "2.0.17-1.toy"
    assert image.packages["python3-lib389"] == "2.0.17-1.toy"


def test_module_stream(engine, matrix, base, site):
    packages = {
        "kind": "dnf",
        "modules": ["389-ds:1.4"],
        "repositories": {"main": f"{site}/main/", "streams": f"{site}/streams/"},
        **TRUST,
    }
    row = row_of(
        DNF, id="toy-el8", family="el8", base=base, packages=packages,
        versions={"389-ds": "1.4.3.30"},
    )  # fmt: skip
    assert build(engine, matrix, row).packages["389-ds-base"] == "1.4.3.30-6.module+toy"


def test_repository_that_cannot_be_reached(engine, matrix, base):
    packages = {"kind": "dnf", "repositories": {"gone": "http://127.0.0.1:9/gone/"}, **TRUST}
    with pytest.raises(UnreachableError, match="toy-dnf"):
        build(engine, matrix, row_of(DNF, base=base, packages=packages))


@pytest.fixture
def registry(engine, tmp_path, monkeypatch) -> Iterator[Registry]:
    with serving(Registry(engine=engine, folder=tmp_path / "registry")) as running:
        conf = tmp_path / "registries.conf"
        conf.write_text(f'[[registry]]\nlocation = "{running.address}"\ninsecure = true\n')
        monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(conf))
        (tmp_path / "registry").mkdir()
        yield running


def publish(registry: Registry, image: Image) -> str:
    """Move an image to the registry: podman would know a local twin by two digests."""
    digest = registry.put(image.reference, "1")
    registry.engine.must("rmi", image.reference)
    return digest


def test_registry_image_is_pulled_once_and_locked_by_digest(engine, matrix, dnf_row, registry):
    first = build(engine, matrix, dnf_row)
    digest = publish(registry, first)
    row = row_of(
        DNF, id="toy-freeipa", family="freeipa", packages={"kind": "preinstalled"},
        base={"kind": "registry", "image": f"{registry.address}/toy:1"},
    )  # fmt: skip
    lock = MatrixLock.of_matrix(matrix.file)

    image = build(engine, matrix, row)
    assert lock.read(row).digest == digest
    assert image.packages == first.packages

    # The tag moves on; the lock does not.
    moved = dnf_row.model_copy(update={"versions": {"389-ds": "2.0.16"}})
    later = publish(registry, build(engine, matrix, moved))
    assert later != digest
    assert build(engine, matrix, row, no_cache=True).key == image.key

    # The old digest is gone from the registry: drift, refused.
    del registry.content[digest]
    with pytest.raises(PackageError, match="which the registry no longer has") as caught:
        build(engine, matrix, row, no_cache=True)
    assert "--relock" in caught.value.hint
    assert lock.read(row).digest == digest

    # Accepted, it is the new image, which is not what the row promises.
    with pytest.raises(PackageError, match=r"2\.0\.15 was requested, but the image has 2\.0\.16"):
        build(engine, matrix, row, relock=True)
    assert lock.read(row).digest == digest


def test_registry_that_cannot_be_reached(engine, matrix):
    row = row_of(DNF, base={"kind": "registry", "image": "127.0.0.1:9/toy:1"})
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9"):
        build(engine, matrix, row)
