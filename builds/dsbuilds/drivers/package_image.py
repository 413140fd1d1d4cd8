"""Built packages, installed over a row's image by the system's own installer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dsbuilds.drivers.package_build import LIBEXEC, index_of, repository_of
from dsbuilds.drivers.package_toolchain import containerfile
from dsharness.containers.container import Options, running
from dsharness.content_key import content_key
from dsharness.errors import BuildError, ImageError
from dsharness.model import Build, Family, Image, Row
from dsharness.products.row_facts import packages_of
from dsharness.progress import Progress
from dsimages import manifest
from dsimages.base_image import CAPABILITIES
from dsimages.build_failure import fault
from dsimages.buildah import (
    DRAFT,
    REPOSITORY,
    Recipe,
    Workshop,
    build,
    labels_of,
    own_name,
    untag,
)
from dsimages.keyed_image import keyed_image

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
