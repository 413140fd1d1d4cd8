"""A toolchain's image: a row's image and what building takes, so that libraries are the same."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dsharness.content import content_key
from dsharness.engine import Engine
from dsharness.model import Family, Image, Matrix, Toolchain
from dsharness.paths import cache_home, logs_home
from dsharness.waiting import Deadline
from dsimages import manifest
from dsimages.buildah import REPOSITORY, Recipe, Workshop, build, exists, labels_of, replacing
from dsimages.building import build_image
from dsimages.exclusive import exclusive
from dsimages.finding import Progress
from dsimages.rendering import LIBEXEC
from dsimages.wording import NAME, all_checked

LIMIT_S = 1800.0
TOOLS = ("gcc", "rustc", "cargo", "binutils", "make", "ccache", "autoconf", "automake", "libtool")


@dataclass(frozen=True, kw_only=True)
class Shop:
    """A toolchain that is ready: where trees are built, and the image they will run on."""

    id: str
    reference: str
    key: str
    runtime: Image
    tools: dict[str, str]


def shop_of(engine: Engine, matrix: Matrix, toolchain: Toolchain, *, progress: Progress) -> Shop:
    """The toolchain's image: found, or built now."""
    row = matrix.row(toolchain.row)
    runtime = build_image(engine, matrix, row, on_progress=progress)
    key = content_key([runtime.key, toolchain.packages])
    reference = f"{REPOSITORY}/toolchain:{key}"
    log = logs_home() / "toolchains" / f"{toolchain.id}-{key}.log"
    deadline = Deadline.after(LIMIT_S)
    with exclusive(cache_home() / "locks" / f"toolchain-{key}.lock", deadline):
        if not exists(engine, reference):
            progress(f"installing the toolchain {toolchain.id}")
            recipe = Recipe(
                text=render(toolchain, row.family),
                base=runtime.reference,
                reference=reference,
                labels=labels_of("toolchain", row=row.id, key=key),
                what=f"toolchain {toolchain.id}",
            )
            with replacing(engine, reference):
                build(Workshop(engine=engine, deadline=deadline, log=log), recipe)
        known = manifest.recall(key)
        if known is None:
            packages = manifest.read_packages(engine, reference, log)
            known = Image(row_id=row.id, reference=reference, key=key, packages=packages)
            manifest.store(known)
    tools = {name: known.packages[name] for name in TOOLS if name in known.packages}
    return Shop(
        id=toolchain.id,
        reference=reference,
        key=key,
        runtime=runtime,
        tools=tools | runtime.notable,
    )


def render(toolchain: Toolchain, family: Family) -> str:
    """The Containerfile: the row's image and the toolchain's packages."""
    installer = "install-apt" if family is Family.APT else "install-dnf"
    words = all_checked(toolchain.packages, NAME, f"toolchains: {toolchain.id}: packages")
    command = json.dumps([f"{LIBEXEC}/{installer}", *words])
    return f"ARG BASE\nFROM ${{BASE}}\nRUN {command}\n"
