"""A package's toolchain: the row's image and what the package says it is built with."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dsbuilds.drivers.packages import PackageOrder, Progress
from dsbuilds.toolchains.images import Shop
from dsharness.content import content_key
from dsharness.model import Image
from dsharness.paths import cache_home
from dsimages import manifest
from dsimages.buildah import REPOSITORY, Recipe, Workshop, build, exists, labels_of, replacing
from dsimages.exclusive import exclusive

REVISION = 1
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
    *more: str,
    progress: Progress,
) -> Shop:
    """The toolchain's image, found or built now; packages that need the same share it.

    ``script`` gets the path of the file ``argument``, and ``more``.
    """
    text = containerfile(script.read_text(encoding="utf-8"), f"{MOUNTED}/{argument}", *more)
    key = content_key([REVISION, order.image.key, text, dict(files)])
    reference = f"{REPOSITORY}/toolchain:{key}"
    with exclusive(cache_home() / "locks" / f"toolchain-{key}.lock", at.deadline):
        if not exists(at.engine, reference):
            progress(f"installing what {order.source.name} is built with")
            with tempfile.TemporaryDirectory(prefix="dsbisect-needs-") as folder:
                for name, content in files.items():
                    (Path(folder) / name).write_text(content, encoding="utf-8")
                recipe = Recipe(
                    text=text,
                    base=order.image.reference,
                    reference=reference,
                    labels=labels_of("toolchain", row=order.row.id, key=key),
                    what=f"{order.row.id}: the build dependencies of {order.source.name}",
                    context=Path(folder),
                )
                with replacing(at.engine, reference):
                    build(at, recipe)
        packages = _manifest(at, order, reference, key)
    tools = {name: packages[name] for name in TOOLS if name in packages}
    return Shop(
        id=order.row.id,
        reference=reference,
        key=key,
        runtime=order.image,
        tools=tools | order.image.notable,
    )


def containerfile(script: str, *args: str, target: str = MOUNTED) -> str:
    """Run a script of the lab with the context mounted; neither becomes part of the image."""
    command = json.dumps(["/bin/sh", "-c", script, "sh", *args])
    return f"ARG BASE\nFROM ${{BASE}}\nRUN --mount=type=bind,target={target} {command}\n"


def _manifest(at: Workshop, order: PackageOrder, reference: str, key: str) -> dict[str, str]:
    known = manifest.recall(key)
    if known is None:
        packages = manifest.read_packages(at.engine, reference, at.log)
        known = Image(row_id=order.row.id, reference=reference, key=key, packages=packages)
        manifest.store(known)
    return known.packages
