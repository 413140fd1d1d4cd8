"""An install tree laid over the system it was built for: an image like any other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dsbuilds.drivers.runtime_libraries import runtime_for
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.model import Build, Family, Image
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsharness.products import product
from dsimages import manifest
from dsimages.buildah import Recipe, Workshop, build, labels_of
from dsimages.image_catalog import Progress
from dsimages.keyed_image import keyed_image

REVISION = 2
LIMIT_S = 600.0
TEXT = "ARG BASE\nFROM ${BASE}\nCOPY opt /opt\n"


def layered(
    engine: Engine,
    made: Build,
    toolset: ToolchainImage,
    candidate: str,
    *,
    serves: str,
    progress: Progress,
) -> Image:
    """The image that serves a build; builds of equal content share it."""
    key = content_key([REVISION, toolset.runtime.key, made.content])
    log = logs_home() / "builds" / f"layer-{key}.log"
    at = Workshop(engine=engine, deadline=Deadline.after(LIMIT_S), log=log)

    def make(reference: str) -> None:
        install = Path(made.folder) / "install"
        below = runtime_for(engine, install, toolset, progress)
        recipe = Recipe(
            text=TEXT,
            base=below.reference,
            reference=reference,
            labels=labels_of("built", row=below.candidate_id, key=key, build=made.key),
            what=f"the image of build {made.key}",
            context=install,
        )
        build(at, recipe)

    reference = keyed_image(at, "built", key, make)
    return Image(
        candidate_id=candidate,
        reference=reference,
        key=key,
        product=serves,
        packages=_served(
            manifest.packages_of(engine, reference, candidate, log), made, serves, toolset.family
        ),
        build=made.provenance,
        promise=made.promise,
    )


def _served(
    packages: Mapping[str, str], made: Build, serves: str, family: Family
) -> dict[str, str]:
    """What runs: the packages below, and the tree in place of the packaged server."""
    known = product(serves)
    ours = known.deb if family is Family.APT else known.rpm
    if ours is None:
        return dict(packages)
    below = {name: version for name, version in packages.items() if name not in ours.all}
    return below | {ours.server: f"tree {made.provenance.tree[:12]}"}
