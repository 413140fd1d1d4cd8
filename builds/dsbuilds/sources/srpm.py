"""A source RPM by file, URL or Koji's name of it, taken apart by rpm itself."""

from __future__ import annotations

import re
from pathlib import Path

from dsbuilds.failure_reason import cause_of
from dsbuilds.sandbox.build_output import content_of, copy_output, plain_file
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.sandbox.script import confined_run, work_folder
from dsbuilds.sources.download import file_of, shelved
from dsbuilds.sources.source_package import SourcePackage
from dsharness.content_key import file_sha256
from dsharness.errors import BuildError, SourceError
from dsharness.model import Image, SrpmSource
from dsimages.buildah import Workshop

UNPACK = Path(__file__).parents[1] / "libexec" / "unpack-srpm"
KOJI = "https://kojipkgs.fedoraproject.org/packages"
NVR = re.compile(r"(?P<name>[A-Za-z0-9._+-]+)-(?P<version>[^-/]+)-(?P<release>[^-/]+)")
LIMITS = Limits(time_s=300.0)


def srpm_source(at: Workshop, image: Image, wish: SrpmSource) -> SourcePackage:
    """The packager's files of an SRPM; ``image`` is any that has rpm in it."""
    path = file_of(location_of(wish.location), wish.sha256, at.deadline)
    digest = file_sha256(path)

    def fill(folder: Path) -> None:
        with work_folder() as build:
            output = confined_run(
                at, image.reference, UNPACK, "source.rpm",
                build=build, volumes=((path, "/source/source.rpm", "ro"),), limits=LIMITS,
            )  # fmt: skip
            if output is not None:
                raise SourceError(
                    f"{path.name} is not a source RPM: {cause_of(output)}",
                    hint="name a file that ends in .src.rpm",
                    log=at.log,
                )
            take_in(build, folder, path.name, at.log)

    return described(shelved("srpm", digest[:16], at.deadline, fill), path.name)


def take_in(build: Path, folder: Path, name: str, log: Path) -> None:
    """The packager's own files; what is none of these, an SRPM has no reason to hold."""
    try:
        for part in ("SPECS", "SOURCES"):
            copy_output(build, part, target=build / f"taken-{part}", keep=plain_file)
            for file in (build / f"taken-{part}").iterdir():
                file.rename(folder / file.name)
    except BuildError as error:
        raise SourceError(
            f"{name} cannot be used: {error.message}",
            hint="name an SRPM that holds files and no links", log=log,
        ) from error  # fmt: skip


def location_of(wish: str) -> str:
    """A file, a URL, or where Koji keeps the build of that name-version-release."""
    found = NVR.fullmatch(wish)
    if found is None or wish.endswith(".rpm") or Path(wish).exists():
        return wish
    folder = f"{KOJI}/{found['name']}/{found['version']}/{found['release']}"
    return f"{folder}/src/{wish}.src.rpm"


def described(folder: Path, origin: str) -> SourcePackage:
    """What lies in a folder with one spec and its sources."""
    specs = list(folder.glob("*.spec"))
    if len(specs) != 1:
        raise SourceError(
            f"{origin} holds {len(specs)} spec files, not one", hint="name an SRPM with one spec"
        )
    found = NVR.fullmatch(origin.removesuffix(".src.rpm"))
    return SourcePackage(
        name=found["name"] if found else specs[0].stem,
        version=f"{found['version']}-{found['release']}" if found else origin,
        folder=folder,
        control=specs[0].name,
        identity=content_of(folder),
        origin=origin,
    )
