"""A package's toolchain: the row's image and what the package says it is built with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dsbuilds.drivers.package_build import PackageOrder
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.lab_folders import scratch_folder
from dsharness.content_key import content_key
from dsharness.products import notable_versions
from dsharness.progress import Progress
from dsimages import manifest
from dsimages.buildah import Recipe, Workshop, build, labels_of
from dsimages.keyed_image import keyed_image

REVISION = 2
MOUNTED = "/run/dsbisect-needs"
TOOLS = (
    "gcc", "rustc", "rust", "cargo", "binutils", "make", "ccache", "dpkg-dev", "debhelper",
    "rpm-build", "autoconf", "automake", "libtool",
)  # fmt: skip


def dependencies_shop(
    at: Workshop,
    order: PackageOrder,
    script: Path,
    argument: str,
    files: Mapping[str, str],
    *,
    base: ToolchainImage | None = None,
    progress: Progress,
) -> ToolchainImage:
    """The toolchain's image, found or built now; packages that need the same share it.

    ``script`` gets the path of the file ``argument``; it has the network, so what it reads is data
    and nothing that is evaluated. ``base`` is what it stands on, else the row's image.
    """
    below = base or order.image
    text = containerfile(script.read_text(encoding="utf-8"), f"{MOUNTED}/{argument}")
    key = content_key([REVISION, below.key, text, dict(files)])

    def make(reference: str) -> None:
        progress(f"installing what {order.source.name} is built with")
        with scratch_folder("needs") as folder:
            for name, content in files.items():
                (Path(folder) / name).write_text(content, encoding="utf-8")
            recipe = Recipe(
                text=text,
                base=below.reference,
                reference=reference,
                labels=labels_of("toolchain", row=order.row.id, key=key),
                what=f"{order.row.id}: the build dependencies of {order.source.name}",
                context=Path(folder),
            )
            build(at, recipe)

    reference = keyed_image(at, "toolchain", key, make)
    packages = manifest.packages_of(at.engine, reference, order.row.id, at.log)
    tools = {name: packages[name] for name in TOOLS if name in packages}
    return ToolchainImage(
        id=order.row.id,
        reference=reference,
        key=content_key([key, manifest.manifest_key(packages)]),
        runtime=order.image,
        tools=tools | notable_versions(order.image),
    )


def containerfile(script: str, *args: str, target: str = MOUNTED) -> str:
    """Run a script of the lab with the context mounted; neither becomes part of the image."""
    command = json.dumps(["/bin/sh", "-c", script, "sh", *args])
    return f"ARG BASE\nFROM ${{BASE}}\nRUN --mount=type=bind,target={target} {command}\n"
