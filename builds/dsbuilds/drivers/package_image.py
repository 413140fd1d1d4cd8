"""Images for packages: one to build them in, and the row's with the built ones installed over it.

A package's toolchain is the row's image and what the package says it is built with. Built packages
are installed by the system's own installer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dsbuilds.drivers.package_build import LIBEXEC, PackageOrder, index_of, repository_of
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.container import Options, running
from dsharness.containers.lab_folders import scratch_folder
from dsharness.content_key import content_key
from dsharness.errors import BuildError, ImageError
from dsharness.model import Build, Family, Image, Row
from dsharness.products import notable_versions
from dsharness.products.catalog import packages_of
from dsharness.progress import Progress
from dsimages import manifest
from dsimages.base_image import CAPABILITIES
from dsimages.buildah import (
    DRAFT,
    REPOSITORY,
    Recipe,
    Workshop,
    build,
    fault,
    keyed_image,
    labels_of,
    own_name,
    untag,
)

NEEDS_REVISION = 2
NEEDS_AT = "/run/dsbisect-needs"
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
    text = containerfile(script.read_text(encoding="utf-8"), f"{NEEDS_AT}/{argument}")
    key = content_key([NEEDS_REVISION, below.key, text, dict(files)])

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


def containerfile(script: str, *args: str, target: str = NEEDS_AT) -> str:
    """Run a script of the lab with the context mounted; neither becomes part of the image."""
    command = json.dumps(["/bin/sh", "-c", script, "sh", *args])
    return f"ARG BASE\nFROM ${{BASE}}\nRUN --mount=type=bind,target={target} {command}\n"


REVISION = 2
MOUNTED = "/run/dsbisect-built"
SAID_BYTES = 8 << 20  # of what packages' own scripts say; the log has more


def installed(at: Workshop, base: Image, made: Build, row: Row, *, progress: Progress) -> Image:
    """The row's image with the built packages over those that it had, and its manifest.

    What is installed is what the image already had of the built packages, and the server. Builds
    of equal content share the image.
    """
    chosen = chosen_packages(base, made, packages_of(row).server)
    fetch, install = (script(row.family, verb, chosen) for verb in ("fetch", "install"))
    key = content_key([REVISION, base.key, made.content, fetch, install])

    def make(reference: str) -> None:
        progress(f"installing {', '.join(chosen)}")
        labels = labels_of("built", row=row.id, key=key, build=made.key)
        _install(at, base, made, row, chosen, (fetch, install), labels, reference)

    reference = keyed_image(at, "built", key, make)
    return Image(
        candidate_id=row.id,
        reference=reference,
        key=key,
        product=base.product,
        packages=manifest.packages_of(at.engine, reference, row.id, at.log),
        build=made.provenance,
        promise=made.promise,
    )


def chosen_packages(base: Image, made: Build, server: str) -> dict[str, str]:
    """Name -> version of the built packages that are installed."""
    built = {name: version for name, version, _ in index_of(repository_of(made))}
    if server not in built:
        raise BuildError(
            f"build {made.key} made no {server}, but {', '.join(built) or 'nothing'}",
            hint="name the source package that makes the server",
        )
    return {name: built[name] for name in sorted(built) if name in base.packages or name == server}


def script(family: Family, verb: str, chosen: dict[str, str]) -> tuple[str, ...]:
    """The script that fetches or installs packages, and their exact versions as its arguments."""
    file = LIBEXEC / f"{verb}-built-{'apt' if family is Family.APT else 'dnf'}"
    return (file.read_text(encoding="utf-8"), *exact_words(family, chosen))


def exact_words(family: Family, versions: Mapping[str, str]) -> list[str]:
    """How the family's installer is asked for exactly these versions."""
    joint = "=" if family is Family.APT else "-"
    return [f"{name}{joint}{version}" for name, version in versions.items()]


def confined(packages: Path) -> Options:
    """The container in which packages' own scripts run; pure, so that a test can read it.

    They have no network. It is podman's: buildah bounds no number of processes.
    """
    volumes = ((packages, MOUNTED, "ro"),)
    return Options(user="root", capabilities=CAPABILITIES, volumes=volumes)


def _install(
    at: Workshop,
    base: Image,
    made: Build,
    row: Row,
    chosen: dict[str, str],
    scripts: tuple[tuple[str, ...], tuple[str, ...]],
    labels: dict[str, str],
    reference: str,
) -> None:
    """Install under a temporary name; only an image that contains the build gets the reference.

    Dependencies are fetched with the network, without running anything of the packages.
    """
    (fetch, (install, *words)), what = scripts, f"{row.id}: install build {made.key}"
    packages = repository_of(made)
    fetched, draft = (own_name(f"{REPOSITORY}/{DRAFT}:") for _ in scripts)
    recipe = Recipe(
        text=containerfile(*fetch, target=MOUNTED), base=base.reference, reference=fetched,
        labels=labels, what=what, context=packages,
    )  # fmt: skip
    try:
        build(at, recipe)
        with running(
            at.engine, fetched, "sleep", "infinity",
            purpose="install", log=at.log, options=confined(packages),
        ) as box:  # fmt: skip
            done = box.execute(
                "sh", "-c", install, "sh", *words,
                limit_s=at.deadline.left_s, keep_bytes=SAID_BYTES,
            )  # fmt: skip
            if not done.ok:
                raise box.overfilled() or fault(done, what, at.log, foreign=True)
            box.commit(draft, labels)
        check_installed(chosen, manifest.packages_of(at.engine, draft, row.id, at.log), at.log)
        at.engine.must("tag", draft, reference, log=at.log)
    finally:
        for each in (draft, fetched):
            untag(at.engine, each)


def check_installed(chosen: dict[str, str], packages: dict[str, str], log: Path) -> None:
    """Refuse an image in which another version than the built one took the place."""
    for name, version in chosen.items():
        found = packages.get(name, "none")
        if found != version:
            raise ImageError(
                f"{name} {version} was built, but {found} is installed",
                hint="the log shows what the installer chose instead",
                log=log,
            )
