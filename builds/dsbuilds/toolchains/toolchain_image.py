"""A toolchain's image: a row's image and what building takes, so that libraries are the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from dsbuilds.toolchains.crate_lock import CRATES_IO
from dsbuilds.toolchains.toolchain_choice import named
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import MatrixError
from dsharness.model import Family, Image, Matrix, Toolchain
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsharness.products import notable_versions
from dsharness.progress import Progress
from dsimages import manifest
from dsimages.buildah import Recipe, Workshop, build, keyed_image, labels_of
from dsimages.containerfile import LIBEXEC
from dsimages.image_set import build_image

LIMIT_S = 1800.0
TOOLS = (
    "gcc",
    "rustc",
    "rustc-web",
    "cargo",
    "cargo-web",
    "binutils",
    "make",
    "ccache",
    "autoconf",
    "automake",
    "libtool",
)


@dataclass(frozen=True, kw_only=True)
class ToolchainImage:
    """A toolchain that is ready: where trees are built, and the image they will run on."""

    id: str
    reference: str
    key: str  # of what is in it: another compiler is another toolchain
    runtime: Image
    tools: dict[str, str]
    family: Family = Family.APT
    cargo: Callable[[], str] | None = field(default=None, compare=False)
    registries: frozenset[str] = frozenset({CRATES_IO})  # from which a lock may take crates

    def fetcher(self) -> str:
        """Return the image whose cargo fetches crates; made when it is asked for."""
        return self.reference if self.cargo is None else self.cargo()


def toolset_of(
    engine: Engine, matrix: Matrix, toolchain: Toolchain, *, progress: Progress
) -> ToolchainImage:
    """Return the toolchain's image: found, or built now."""
    row = matrix.row(toolchain.row)
    runtime = build_image(engine, matrix, row, on_progress=progress)
    key = content_key([runtime.key, toolchain.packages])
    log = logs_home() / "toolchains" / f"{toolchain.id}-{key}.log"
    workshop = Workshop(engine=engine, deadline=Deadline.of_work(LIMIT_S), log=log)

    def make(reference: str) -> None:
        progress(f"installing the toolchain {toolchain.id}")
        recipe = Recipe(
            text=render(toolchain, row.family),
            base=runtime.reference,
            reference=reference,
            labels=labels_of("toolchain", row=row.id, key=key),
            what=f"toolchain {toolchain.id}",
        )
        build(workshop, recipe)

    reference = keyed_image(workshop, "toolchain", key, make)
    packages = manifest.packages_of(engine, reference, row.id, log)
    tools = {name: packages[name] for name in TOOLS if name in packages}
    return ToolchainImage(
        id=toolchain.id,
        reference=reference,
        key=content_key([key, manifest.manifest_key(packages)]),
        runtime=runtime,
        family=row.family,
        tools=tools | notable_versions(runtime),
        cargo=_cargo(engine, matrix, toolchain, progress),
        registries=frozenset({CRATES_IO, *matrix.tools.crates}),
    )


def _cargo(
    engine: Engine, matrix: Matrix, toolchain: Toolchain, progress: Progress
) -> Callable[[], str] | None:
    """Return the one toolchain that fetches crates for all, where the matrix names it."""
    name = matrix.tools.cargo
    if name is None or name == toolchain.id:
        return None
    return lambda: (
        toolset_of(engine, matrix, named(name, matrix.toolchains), progress=progress).reference
    )


def installer(family: Family) -> str:
    """Return the script of the lab that installs packages on a family's systems."""
    return "install-apt" if family is Family.APT else "install-dnf"


def render(toolchain: Toolchain, family: Family) -> str:
    """Return the Containerfile: the row's image and the toolchain's packages."""
    command = json.dumps([f"{LIBEXEC}/{installer(family)}", *toolchain.packages])
    return f"ARG BASE\nFROM ${{BASE}}\nRUN {command}\n"


def check_tools(
    engine: Engine, matrix: Matrix, *, progress: Callable[[str], None]
) -> ToolchainImage:
    """Find it, or make it now; MatrixError if the matrix names none."""
    purpose = "that looks at packages and servers"
    return own_tools(engine, matrix, matrix.tools.checks, "checks", purpose, progress=progress)


def own_tools(
    engine: Engine, matrix: Matrix, name: str | None, key: str, purpose: str, *, progress: Progress
) -> ToolchainImage:
    """Return a toolchain of the lab's own, which the matrix names under a key of `tools`."""
    if name is None:
        raise MatrixError(
            f"the matrix names no toolchain {purpose}",
            hint=f"name one as `tools: {key}:`; docs/matrix.md",
        )
    return toolset_of(engine, matrix, named(name, matrix.toolchains), progress=progress)
