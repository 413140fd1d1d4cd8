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
    "gcc",
    "rustc",
    "rust",
    "cargo",
    "binutils",
    "make",
    "ccache",
    "dpkg-dev",
    "debhelper",
    "rpm-build",
    "autoconf",
    "automake",
    "libtool",
)


def dependencies_shop(
    workshop: Workshop,
    order: PackageOrder,
    script: Path,
    argument: str,
    files: Mapping[str, str],
    *,
    base: ToolchainImage | None = None,
    progress: Progress,
) -> ToolchainImage:
    """Return the toolchain's image, found or built now; packages that need the same share it.

    ``script`` gets the path of the file ``argument``; it has the network, so what it reads is data
    and nothing that is evaluated. ``base`` is what it stands on, else the row's image.
    """
    base_image = base or order.image
    text = containerfile(script.read_text(encoding="utf-8"), f"{NEEDS_AT}/{argument}")
    key = content_key([NEEDS_REVISION, base_image.key, text, dict(files)])

    def make(reference: str) -> None:
        progress(f"installing what {order.source.name} is built with")
        with scratch_folder("needs") as folder:
            for name, content in files.items():
                (Path(folder) / name).write_text(content, encoding="utf-8")
            recipe = Recipe(
                text=text,
                base=base_image.reference,
                reference=reference,
                labels=labels_of("toolchain", row=order.row.id, key=key),
                what=f"{order.row.id}: the build dependencies of {order.source.name}",
                context=Path(folder),
            )
            build(workshop, recipe)

    reference = keyed_image(workshop, "toolchain", key, make)
    packages = manifest.packages_of(workshop.engine, reference, order.row.id, workshop.log)
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


def installed(
    workshop: Workshop, base: Image, package_build: Build, row: Row, *, progress: Progress
) -> Image:
    """Return the row's image with the built packages over those that it had, and its manifest.

    What is installed is what the image already had of the built packages, and the server. Builds
    of equal content share the image.
    """
    versions = chosen_packages(base, package_build, packages_of(row).server)
    fetch, install = (script(row.family, verb, versions) for verb in ("fetch", "install"))
    key = content_key([REVISION, base.key, package_build.content, fetch, install])

    def make(reference: str) -> None:
        progress(f"installing {', '.join(versions)}")
        labels = labels_of("built", row=row.id, key=key, build=package_build.key)
        _install(workshop, base, package_build, row, versions, (fetch, install), labels, reference)

    reference = keyed_image(workshop, "built", key, make)
    return Image(
        candidate_id=row.id,
        reference=reference,
        key=key,
        product=base.product,
        packages=manifest.packages_of(workshop.engine, reference, row.id, workshop.log),
        build=package_build.provenance,
        promise=package_build.promise,
    )


def chosen_packages(base: Image, package_build: Build, server: str) -> dict[str, str]:
    """Name -> version of the built packages that are installed."""
    built_versions = {name: version for name, version, _ in index_of(repository_of(package_build))}
    if server not in built_versions:
        raise BuildError(
            f"build {package_build.key} made no {server}, but "
            f"{', '.join(built_versions) or 'nothing'}",
            hint="name the source package that makes the server",
        )
    return {
        name: built_versions[name]
        for name in sorted(built_versions)
        if name in base.packages or name == server
    }


def script(family: Family, verb: str, versions: dict[str, str]) -> tuple[str, ...]:
    """The script that fetches or installs packages, and their exact versions as its arguments."""
    file = LIBEXEC / f"{verb}-built-{'apt' if family is Family.APT else 'dnf'}"
    return (file.read_text(encoding="utf-8"), *exact_words(family, versions))


def exact_words(family: Family, versions: Mapping[str, str]) -> list[str]:
    """Return how the family's installer is asked for exactly these versions."""
    joint = "=" if family is Family.APT else "-"
    return [f"{name}{joint}{version}" for name, version in versions.items()]


def confined(packages: Path) -> Options:
    """Return the container in which packages' own scripts run; pure, so that a test can read it.

    They have no network. It is podman's: buildah bounds no number of processes.
    """
    volumes = ((packages, MOUNTED, "ro"),)
    return Options(user="root", capabilities=CAPABILITIES, volumes=volumes)


def _install(
    workshop: Workshop,
    base: Image,
    package_build: Build,
    row: Row,
    versions: dict[str, str],
    scripts: tuple[tuple[str, ...], tuple[str, ...]],
    labels: dict[str, str],
    reference: str,
) -> None:
    """Install under a temporary name; only an image that contains the build gets the reference.

    Dependencies are fetched with the network, without running anything of the packages.
    """
    (fetch, (install, *words)), task = scripts, f"{row.id}: install build {package_build.key}"
    packages = repository_of(package_build)
    fetched, draft = (own_name(f"{REPOSITORY}/{DRAFT}:") for _ in scripts)
    recipe = Recipe(
        text=containerfile(*fetch, target=MOUNTED),
        base=base.reference,
        reference=fetched,
        labels=labels,
        what=task,
        context=packages,
    )
    try:
        build(workshop, recipe)
        with running(
            workshop.engine,
            fetched,
            purpose="install",
            log=workshop.log,
            options=confined(packages),
        ) as box:
            command = ("sh", "-c", install, "sh", *words)
            result = box.execute(*command, limit_s=workshop.deadline.left_s, keep_bytes=SAID_BYTES)
            if not result.ok:
                raise box.overfilled() or fault(result, task, workshop.log, foreign=True)
            box.commit(draft, labels)
        check_installed(
            versions,
            manifest.packages_of(workshop.engine, draft, row.id, workshop.log),
            workshop.log,
        )
        workshop.engine.must("tag", draft, reference, log=workshop.log)
    finally:
        for name in (draft, fetched):
            untag(workshop.engine, name)


def check_installed(versions: dict[str, str], packages: dict[str, str], log: Path) -> None:
    """Refuse an image in which another version than the built one took the place."""
    for name, version in versions.items():
        installed_version = packages.get(name, "none")
        if installed_version != version:
            raise ImageError(
                f"{name} {version} was built, but {installed_version} is installed",
                hint="the log shows what the installer chose instead",
                log=log,
            )
