"""RPM packages of a repository's revision: its own spec, with the crates that it locks."""

from __future__ import annotations

from dataclasses import replace

from dsbuilds.drivers.package_build import PackageOrder, Progress
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sources.source_tree import Tree
from dsbuilds.sources.spec_tree import FLAGS, spec_source
from dsbuilds.toolchains.crates import crates_for
from dsbuilds.toolchains.traits import CARGO_LOCK
from dsharness.model import Image, Row
from dsimages.buildah import Workshop

VENDORED = "vendor/"


def repository_order(
    at: Workshop, row: Row, image: Image, tree: Tree, *, progress: Progress
) -> tuple[RpmDriver, PackageOrder]:
    """What to build a tree by; its crates are fetched first, as its Cargo.lock has them."""
    driver = RpmDriver(flags=FLAGS)
    order = PackageOrder(row=row, image=image, source=spec_source(tree, at.deadline))
    files = tree.listing()
    if CARGO_LOCK in files and not any(path.startswith(VENDORED) for path in files):
        toolset = driver.toolset(at, order, progress=progress)
        crates = crates_for(at.engine, tree, toolset, at.log, progress)
        order = replace(order, source=spec_source(tree, at.deadline, crates))
    return driver, order
