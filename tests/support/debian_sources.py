"""What Debian's packages are built from: real trees of four eras, fetched once."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import pytest

from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.matrix import find_row, load_matrix
from dsharness.model import Image
from dsharness.paths import cache_home, logs_home
from dsharness.process.deadline import Deadline
from dsharness.products import product, product_of
from dsimages.file_lock import exclusive
from dsimages.image_set import build_image

MATRIX = Path(__file__).parents[2] / "matrix.yaml"
DEBIAN_ROWS = ("debian-11", "debian-12", "debian-13", "debian-sid")
LIMIT_S = 900.0
# What apt and dpkg need to install dpkg-dev; the image of the row has neither it nor sources.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
# A partial mirror keeps packages longer than what they were built from.
GONE = re.compile(r"\b404 +Not Found|Unable to find a source package")
FETCH = """
set -eu
export DEBIAN_FRONTEND=noninteractive
apt() {
    apt-get -q -y -o Acquire::Retries=3 -o Acquire::Check-Valid-Until=false \
        -o APT::Sandbox::User=root -o Dpkg::Options::=--force-unsafe-io "$@"
}
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/src.list
apt update
cd /out
for version in ${2:-$(apt-cache showsrc "$1" | sed -n 's/^Version: //p')}; do
    apt --download-only source "$1=$version" && break
    rm -f ./*
done
ls ./*.dsc >/dev/null
apt install --no-install-recommends dpkg-dev
dpkg-source --no-check --extract "$1"_*.dsc tree
"""


def debian_source(row_id: str, *, exact: bool = True) -> Path:
    """The unpacked tree of a row's source package with Debian's patches; do not write to it.

    ``exact`` wants that of the installed version; else any that the archive holds for this system
    will do. Skips the test when there is none.
    """
    engine = detect()
    matrix = load_matrix(MATRIX)
    image = build_image(engine, matrix, find_row(matrix, row_id), on_progress=lambda _: None)
    packages = product(product_of(find_row(matrix, row_id))).deb
    assert packages is not None
    name, version = packages.source, source_version(image.packages[packages.server])
    folder = cache_home() / "tests" / f"{name}_{version.partition(':')[2] or version}.dsc"
    lock = cache_home() / "locks" / f"test-source-{row_id}.lock"
    with exclusive(lock, Deadline.after(LIMIT_S)):
        if not folder.exists():
            _fetch(engine, image, name, version if exact else "", folder)
    return folder / "tree"


def dsc_of(row_id: str) -> Path:
    """The source package itself: the .dsc, with the archives that it names."""
    (dsc,) = debian_source(row_id).parent.glob("*.dsc")
    return dsc


def source_version(binary: str) -> str:
    """A rebuild's package (+b1) comes from the source without that suffix."""
    return re.sub(r"\+b\d+$", "", binary)


def _fetch(engine: Engine, image: Image, name: str, version: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}-"))
    logs_home().mkdir(parents=True, exist_ok=True)
    log = logs_home() / f"test-source-{image.candidate_id}.log"
    options = Options(network="host", capabilities=CAPABILITIES, volumes=((work, "/out", "rw"),))
    try:
        with running(
            engine, image.reference, "sleep", "infinity",
            purpose="test-source", log=log, options=options,
        ) as box:  # fmt: skip
            done = box.execute("sh", "-c", FETCH, "sh", name, version, limit_s=LIMIT_S)
        if not done.ok and GONE.search(str(done)):
            pytest.skip(f"the archive lists {name} {version} but does not hold its source")
        assert done.ok, f"no source of {name} {version}: {done}"
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
