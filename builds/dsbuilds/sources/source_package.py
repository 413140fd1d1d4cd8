"""A source package as its packager ships it: the files, and what identifies them.

It is what a row's own distribution offers, by apt in a container of its image; or a source RPM by
file, URL or Koji's name of it, taken apart by rpm itself.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from debian.deb822 import Deb822
from debian.debian_support import Version

from dsbuilds.failure_reason import cause_of
from dsbuilds.sandbox.sandbox import Limits, confined_run, work_folder
from dsbuilds.sandbox.untrusted_files import content_of, copy_output, plain_file
from dsbuilds.sources.download import file_of, shelved
from dsharness.containers.container import Container, Options, running
from dsharness.content_key import content_key, file_sha256
from dsharness.errors import BuildError, DeadlineError, DsbisectError, SourceError
from dsharness.model import Image, SrpmSource
from dsharness.package_version import answers
from dsharness.process.command import Completed
from dsharness.progress import Progress
from dsimages.buildah import UNREACHABLE, Workshop, no_answer_or_a_refusal


@dataclass(frozen=True, kw_only=True)
class SourcePackage:
    """A folder with a .dsc or a .spec and all that it names; nothing is unpacked yet."""

    name: str
    version: str  # in full: with epoch and the packager's revision
    folder: Path
    control: str  # the file name of the .dsc or the .spec
    identity: str  # hash of the control file, which names the others, or of all files
    origin: str  # in words

    @property
    def control_text(self) -> str:
        return (self.folder / self.control).read_text(encoding="utf-8", errors="replace")


LIBEXEC = Path(__file__).parents[1] / "libexec"
INSIDE = "/usr/libexec/dsbisect-build"
# apt keeps its lists as its own user, in folders that are closed to others.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
LIMIT_S = 600.0
ORIGINAL = re.compile(r"\.orig\.tar\.\w+$")
GONE = re.compile(r"\b404\b")


def distribution_source(
    workshop: Workshop, image: Image, package: str, wish: str | None, *, progress: Progress
) -> SourcePackage:
    """The source package: the newest that answers the wish, as of the first time it was asked for.

    An image is one state of its distribution, so its answer is kept: later runs need no network.
    """
    folder = _fetched(workshop, image, package, wish, progress)
    return dsc_package(folder, image.candidate_id)


def distribution_archive(
    workshop: Workshop, image: Image, package: str, wish: str | None, *, progress: Progress
) -> Path:
    """Return upstream's archive in the source package: nothing else of it is asked for."""
    folder = _fetched(workshop, image, package, wish, progress, "--tar-only")
    archives = [path for path in folder.iterdir() if ORIGINAL.search(path.name)]
    if len(archives) != 1:
        raise SourceError(
            f"the source {package} of {image.candidate_id} has {len(archives)} archives of "
            "upstream, not one",
            hint="name a tarball or a repository instead",
        )
    return archives[0]


def dsc_package(folder: Path, where: str) -> SourcePackage:
    """Return what lies in a folder with one .dsc; OSError or KeyError when it is not whole."""
    (control,) = list(folder.glob("*.dsc")) or [folder / "missing.dsc"]
    content = control.read_bytes()
    fields = Deb822(content.decode(errors="replace"))
    return SourcePackage(
        name=fields["Source"],
        version=fields["Version"],
        folder=folder,
        control=control.name,
        identity=hashlib.sha256(content).hexdigest(),
        origin=f"{fields['Source']} {fields['Version']}, the source package of {where}",
    )


def _fetched(
    workshop: Workshop,
    image: Image,
    package: str,
    wish: str | None,
    progress: Progress,
    *options: str,
) -> Path:
    volumes = tuple(
        (LIBEXEC / name, f"{INSIDE}/{name}", "ro") for name in ("list-sources", "fetch-source")
    )

    def fill(out: Path) -> None:
        progress(f"fetching the source of {package}")
        confined = Options(
            network="host", capabilities=CAPABILITIES, volumes=(*volumes, (out, "/out", "rw"))
        )
        with running(
            workshop.engine, image.reference, purpose="source", log=workshop.log, options=confined
        ) as box:
            limit_s = min(LIMIT_S, workshop.deadline.left_s)
            result = box.execute(f"{INSIDE}/list-sources", package, limit_s=limit_s)
            if not result.ok:
                raise refusal(result, f"the sources of {image.candidate_id}", workshop.log)
            _first_that_is_there(
                workshop, box, package, fitting(package, wish, result.stdout), progress, *options
            )

    key = content_key([image.key, package, wish, *options])
    return shelved("debian", key, workshop.deadline, fill)


def _first_that_is_there(
    workshop: Workshop,
    box: Container,
    package: str,
    versions: list[str],
    progress: Progress,
    *options: str,
) -> None:
    """Use an older one where an archive of old releases lists what it no longer has."""
    for version in versions:
        limit_s = min(LIMIT_S, workshop.deadline.left_s)
        result = box.execute(f"{INSIDE}/fetch-source", package, version, *options, limit_s=limit_s)
        if result.ok:
            return
        is_last = version == versions[-1]
        if is_last or GONE.search(f"{result.stdout}{result.stderr}") is None:
            raise refusal(result, f"the source {package} {version}", workshop.log)
        progress(f"the archive no longer holds the source {version}")


def fitting(package: str, wish: str | None, output: str) -> list[str]:
    """Return the versions that apt's list of sources offers and that answer, newest first."""
    paragraphs = Deb822.iter_paragraphs(output, use_apt_pkg=False)
    offered = [
        str(paragraph["Version"]) for paragraph in paragraphs if paragraph.get("Package") == package
    ]
    fitting_versions = {version for version in offered if wish is None or answers(version, wish)}
    if not fitting_versions:
        raise SourceError(
            f"source package {package}: wanted {wish or 'any version'}; "
            f"available: {', '.join(dict.fromkeys(offered)) or 'none'}",
            hint="correct build.source.version, or name another source",
        )
    return sorted(fitting_versions, key=Version, reverse=True)


def refusal(result: Completed, what: str, log: Path) -> DsbisectError:
    """Return the error that a failed fetch stands for."""
    output = f"{result.stdout}\n{result.stderr}"
    if result.timed_out:
        return DeadlineError(f"{what}: fetching it timed out", hint="run it again", log=log)
    unreachable = UNREACHABLE.search(output)
    if unreachable is not None:
        return no_answer_or_a_refusal(output)(
            f"{what} cannot be fetched: {unreachable[0].strip()}",
            hint="check the network and its proxy; an archive that no longer has its sources: name "
            "a snapshot of it in packages.sources",
            log=log,
        )
    errors = [line for line in output.splitlines() if line.startswith("E:")]
    return SourceError(
        f"{what} is not available: {errors[0] if errors else cause_of(output)}",
        hint="an archive without sources: name an SRPM, a tarball or a repository instead",
        log=log,
    )


UNPACK = Path(__file__).parents[1] / "libexec" / "unpack-srpm"
KOJI = "https://kojipkgs.fedoraproject.org/packages"
NVR = re.compile(r"(?P<name>[A-Za-z0-9._+-]+)-(?P<version>[^-/]+)-(?P<release>[^-/]+)")
LIMITS = Limits(time_s=300.0)


def srpm_source(workshop: Workshop, image: Image, wish: SrpmSource) -> SourcePackage:
    """Return the packager's files of an SRPM; ``image`` is any that has rpm in it."""
    path = file_of(location_of(wish.location), wish.sha256, workshop.deadline)
    digest = file_sha256(path)

    def fill(folder: Path) -> None:
        with work_folder() as build:
            output = confined_run(
                workshop,
                image.reference,
                UNPACK,
                "source.rpm",
                build=build,
                volumes=((path, "/source/source.rpm", "ro"),),
                limits=LIMITS,
            )
            if output is not None:
                raise SourceError(
                    f"{path.name} is not a source RPM: {cause_of(output)}",
                    hint="name a file that ends in .src.rpm",
                    log=workshop.log,
                )
            take_in(build, folder, path.name, workshop.log)

    return spec_package(shelved("srpm", digest[:16], workshop.deadline, fill), path.name)


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
            hint="name an SRPM that holds files and no links",
            log=log,
        ) from error


def location_of(wish: str) -> str:
    """Return a file, a URL, or where Koji keeps the build of that name-version-release."""
    match = NVR.fullmatch(wish)
    if match is None or wish.endswith(".rpm") or Path(wish).exists():
        return wish
    folder = f"{KOJI}/{match['name']}/{match['version']}/{match['release']}"
    return f"{folder}/src/{wish}.src.rpm"


def spec_package(folder: Path, origin: str) -> SourcePackage:
    """Return what lies in a folder with one spec and its sources."""
    specs = list(folder.glob("*.spec"))
    if len(specs) != 1:
        raise SourceError(
            f"{origin} holds {len(specs)} spec files, not one", hint="name an SRPM with one spec"
        )
    match = NVR.fullmatch(origin.removesuffix(".src.rpm"))
    return SourcePackage(
        name=match["name"] if match else specs[0].stem,
        version=f"{match['version']}-{match['release']}" if match else origin,
        folder=folder,
        control=specs[0].name,
        identity=content_of(folder),
        origin=origin,
    )
