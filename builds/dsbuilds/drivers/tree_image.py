"""An install tree laid over the system it was built for: an image like any other.

What a build needs at run time is the row's image, and packages of libraries that it lacks. A tree
may be linked with what the row's own server is not (PCRE 1 on Debian 12). `ldd` lists what the
binaries need, so that a missing library is reported before a server fails because of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.toolchain_image import ToolchainImage, installer
from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.model import Build, Family, Image
from dsharness.model.value import PackageName, PackageVersion, checked
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsharness.products import product
from dsharness.progress import Progress
from dsimages import manifest
from dsimages.buildah import Recipe, Workshop, build, keyed_image, labels_of
from dsimages.containerfile import LIBEXEC

SCRIPTS = Path(__file__).parents[1] / "libexec"
INSIDE = "/usr/libexec/dsbisect-build"
TREE = "/mnt"  # where its libraries are looked at: nothing of the system is hidden
LIBRARIES_LIMIT_S = 600.0
NAME, VERSION = TypeAdapter[str](PackageName), TypeAdapter[str](PackageVersion)

Owners = Mapping[str, tuple[str, str]]  # library -> package and version


def runtime_for(
    engine: Engine, install: Path, toolset: ToolchainImage, progress: Progress
) -> Image:
    """Return the toolchain's own runtime image, with the packages whose libraries a build needs."""
    log = logs_home() / "builds" / f"libraries-{toolset.id}.log"
    missing = _missing(engine, toolset.runtime.reference, install, log)
    if not missing:
        return toolset.runtime
    owners = _owners(engine, toolset, missing, log)
    _refuse(missing - owners.keys(), toolset, log)
    image = _extended(engine, toolset, dict(sorted(set(owners.values()))), progress)
    _refuse(_missing(engine, image.reference, install, log), toolset, log)
    return image


def _missing(engine: Engine, image: str, install: Path, log: Path) -> set[str]:
    """Return libraries that an install tree needs and an image lacks."""
    return set(_ask(engine, image, "missing-libraries", TREE, tree=install, log=log).split())


def _owners(engine: Engine, toolset: ToolchainImage, libraries: set[str], log: Path) -> Owners:
    """Return which packages brought the libraries that the tree was linked with."""
    output = _ask(engine, toolset.reference, "owners-of-libraries", *sorted(libraries), log=log)
    lines = [line.split("\t") for line in output.splitlines()]
    return {line[0]: (line[1], line[2]) for line in lines if len(line) == 3}


def _ask(
    engine: Engine, image: str, script: str, *args: str, tree: Path | None = None, log: Path
) -> str:
    volumes = [(SCRIPTS / script, f"{INSIDE}/{script}", "ro")]
    volumes += [(tree, TREE, "ro")] if tree else []
    options = Options(volumes=tuple(volumes), extra=("--read-only",))
    with running(engine, image, purpose="libraries", log=log, options=options) as box:
        return box.must(f"{INSIDE}/{script}", *args, what="list a build's libraries")


def _refuse(missing: set[str], toolset: ToolchainImage, log: Path) -> None:
    if missing:
        raise UnbuildableError(
            f"unbuildable: its server needs {', '.join(sorted(missing))}, which neither "
            f"{toolset.runtime.candidate_id} nor a package of the toolchain {toolset.id} has",
            hint="add the package to the toolchain in the matrix",
            log=log,
            lasting=False,
        )


def _extended(
    engine: Engine, toolset: ToolchainImage, packages: Mapping[str, str], progress: Progress
) -> Image:
    """Return the runtime image with further packages, in the versions that were linked with."""
    key = content_key([toolset.runtime.key, dict(packages)])
    log = logs_home() / "toolchains" / f"{toolset.id}-runtime-{key}.log"
    workshop = Workshop(engine=engine, deadline=Deadline.of_work(LIBRARIES_LIMIT_S), log=log)

    def make(reference: str) -> None:
        progress(f"installing {', '.join(packages)}, which the build needs to run")
        words = [
            f"{checked(NAME, name, 'packages of libraries')}"
            f"=={checked(VERSION, version, f'the version of {name}')}"
            for name, version in packages.items()
        ]
        command = json.dumps([f"{LIBEXEC}/{installer(toolset.family)}", *words])
        recipe = Recipe(
            text=f"ARG BASE\nFROM ${{BASE}}\nRUN {command}\n",
            base=toolset.runtime.reference,
            reference=reference,
            labels=labels_of("toolchain", row=toolset.runtime.candidate_id, key=key),
            what=f"what builds of the toolchain {toolset.id} need to run",
        )
        build(workshop, recipe)

    reference = keyed_image(workshop, "toolchain", key, make)
    packages_there = manifest.packages_of(engine, reference, toolset.runtime.candidate_id, log)
    return toolset.runtime.model_copy(
        update={"reference": reference, "key": key, "packages": packages_there}
    )


REVISION = 2
LIMIT_S = 600.0
TEXT = "ARG BASE\nFROM ${BASE}\n"


def layered(
    engine: Engine,
    tree_build: Build,
    toolset: ToolchainImage,
    candidate: str,
    *,
    serves: str,
    progress: Progress,
) -> Image:
    """Return the image that serves a build; builds of equal content share it."""
    key = content_key([REVISION, toolset.runtime.key, tree_build.content])
    log = logs_home() / "builds" / f"layer-{key}.log"
    workshop = Workshop(engine=engine, deadline=Deadline.of_work(LIMIT_S), log=log)

    def make(reference: str) -> None:
        install = Path(tree_build.folder) / "install"
        base_image = runtime_for(engine, install, toolset, progress)
        folders = sorted(install.iterdir())
        recipe = Recipe(
            text=TEXT + "".join(f"COPY {path.name} /{path.name}\n" for path in folders),
            base=base_image.reference,
            reference=reference,
            labels=labels_of("built", row=base_image.candidate_id, key=key, build=tree_build.key),
            what=f"the image of build {tree_build.key}",
            context=install,
        )
        build(workshop, recipe)

    reference = keyed_image(workshop, "built", key, make)
    return Image(
        candidate_id=candidate,
        reference=reference,
        key=key,
        product=serves,
        packages=_served(
            manifest.packages_of(engine, reference, candidate, log),
            tree_build,
            serves,
            toolset.family,
        ),
        build=tree_build.provenance,
        promise=tree_build.promise,
    )


def _served(
    packages: Mapping[str, str], tree_build: Build, serves: str, family: Family
) -> dict[str, str]:
    """Return what runs: the packages below, and the tree in place of the packaged server."""
    facts = product(serves)
    own_packages = facts.deb if family is Family.APT else facts.rpm
    if own_packages is None:
        return dict(packages)
    packages_below = {
        name: version for name, version in packages.items() if name not in own_packages.all
    }
    return packages_below | {own_packages.server: tree_build.provenance.tree_name}
