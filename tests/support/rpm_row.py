"""A row of the RPM system that the tests make, for the whole command line.

Its image has stock RPMs of 389-ds 3.1.2, built once, in a repository of its own. By hand:

    .venv/bin/python tests/support/rpm_row.py FOLDER

writes matrix.yaml and the SRPM into the folder, and prints the command that validates an edit.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matrices import edited
from rows import DNF, row_of
from rpm_debian import DEVEL, ROW_ID, SPEC, rpm_debian, srpm_of
from shipped import MATRIX
from stock_image import with_stock
from toy_registry import Registry, serving

from dsbuilds.drivers.deb import DebDriver
from dsbuilds.drivers.package_build import PackageOrder, build_packages
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sources.source_package import distribution_source, srpm_source
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.content_key import content_key
from dsharness.model import Image, SrpmSource
from dsharness.paths import cache_home, logs_home
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop, exists
from dsimages.file_lock import exclusive
from dsimages.image_set import build_image

VERSION = "3.1.2"
ROW = row_of(DNF, id=ROW_ID, versions={"389-ds": VERSION})
PUBLISHED = "rpm-debian-13"  # the row's id in a matrix
PORT = 5389  # always the same: the image's name is part of all that is made of it
BUILDS = "#!/bin/sh\n"
AS_IT_IS = "sed -i 's/^\\(Release:.*\\)[.]dsbisect1/\\1/' /build/SPECS/*.spec\n"


def workshop(engine: Engine) -> Workshop:
    log = logs_home() / "builds" / "test-rpm.log"
    return Workshop(engine=engine, deadline=Deadline.after(3600), log=log)


def debian_order(at: Workshop) -> PackageOrder:
    """Debian's source of the version, for the row whose system becomes an RPM system."""
    row = MATRIX.row("debian-13")
    image = build_image(at.engine, MATRIX, row, on_progress=print)
    source = distribution_source(at, image, "389-ds-base", None, progress=print)
    return PackageOrder(row=row, image=image, source=source)


def rpm_system(at: Workshop, debian: PackageOrder) -> Image:
    """Without 389-ds."""
    return rpm_debian(at, DebDriver().toolset(at, debian, progress=print))


def kept_srpm(at: Workshop, debian: PackageOrder) -> Path:
    """The source RPM of that source, made once."""
    deb = DebDriver()
    tree = deb.source_tree(at, debian, deb.toolset(at, debian, progress=print))
    folder = cache_home() / "tests" / f"srpm-{content_key([tree.id, SPEC, DEVEL])}"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as work:
            made = srpm_of(tree, VERSION, Path(work))
            folder.mkdir(parents=True)
            shutil.move(made, folder / made.name)
    (kept,) = folder.glob("*.src.rpm")
    return kept


def stock_image(at: Workshop, system: Image, srpm: Path) -> Image:
    """The system with RPMs of the source as it is, under the packager's own release."""
    source = srpm_source(at, system, SrpmSource(location=str(srpm)))
    order = PackageOrder(row=ROW, image=system, source=source)
    plain = RpmDriver()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        script = Path(folder) / "build-stock-rpm"
        text = plain.script.read_text(encoding="utf-8")
        script.write_text(text.replace(BUILDS, f"{BUILDS}{AS_IT_IS}", 1), encoding="utf-8")
        script.chmod(0o755)
        made = build_packages(RpmDriver(script=script), at, order, progress=print)
    return with_stock(at, "rpm", "rpm-stock", system, made)


def published(engine: Engine, image: Image) -> tuple[str, str]:
    """The image under a registry's name, with its digest; from then on it is here."""
    name = f"127.0.0.1:{PORT}/toy"
    record = cache_home() / "tests" / f"rpm-row-{image.key}"
    with exclusive(cache_home() / "locks" / "rpm-row.lock", Deadline.after(1800)):
        digest = record.read_text(encoding="utf-8") if record.exists() else ""
        if not digest or not exists(engine, f"{name}@{digest}"):
            with registry(engine) as running:
                digest = running.put(image.reference, image.key)
                engine.must("pull", "--quiet", f"{name}@{digest}")
            atomic_write(record, digest)
    return f"{name}:{image.key}", digest


@contextmanager
def registry(engine: Engine) -> Iterator[Registry]:
    """Serves what is put into it; podman takes it without TLS."""
    variable = "CONTAINERS_REGISTRIES_CONF"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        conf = Path(folder) / "registries.conf"
        conf.write_text(f'[[registry]]\nlocation = "127.0.0.1:{PORT}"\ninsecure = true\n')
        before = os.environ.get(variable)
        os.environ[variable] = str(conf)
        try:
            with serving(Registry(engine=engine, folder=Path(folder), port=PORT)) as running:
                yield running
        finally:
            del os.environ[variable]
            if before is not None:
                os.environ[variable] = before


def rpm_row(engine: Engine, folder: Path) -> Path:
    """Write the project's matrix with the row into a folder; its SRPM, which stays where it is."""
    at = workshop(engine)
    debian = debian_order(at)
    srpm = kept_srpm(at, debian)
    name, digest = published(engine, stock_image(at, rpm_system(at, debian), srpm))
    shutil.copy(MATRIX.file, folder / "matrix.yaml")
    lock = MATRIX.file.with_suffix(".lock")
    if lock.exists():
        shutil.copy(lock, folder)
    with edited(folder / "matrix.yaml") as document:
        document["rows"].append(
            {
                "id": PUBLISHED,
                "os": {"name": "Debian as an RPM system", "version": "13"},
                "family": "dnf",
                "base": {"kind": "registry", "image": name, "digest": digest},
                "packages": {"kind": "preinstalled"},
                "versions": {"389-ds": VERSION},
            }
        )
    return srpm


if __name__ == "__main__":
    into = Path(sys.argv[1]).absolute()
    into.mkdir(parents=True, exist_ok=True)
    source = shutil.copy(rpm_row(detect(), into), into)
    sys.stdout.write(
        f"dsbisect validate --matrix {into / 'matrix.yaml'} --row {PUBLISHED} --source {source}"
        " --edit rust-rounds=10000 --accept-weaker\n"
    )
