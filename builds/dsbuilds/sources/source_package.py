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
GONE = re.compile(r"\b404\b")


def distribution_source(
    at: Workshop, image: Image, package: str, wish: str | None, *, progress: Progress
) -> SourcePackage:
    """The source package: the newest that answers the wish, as of the first time it was asked for.

    An image is one state of its distribution, so its answer is kept: later runs need no network.
    """
    folder = _fetched(at, image, package, wish, progress)
    return dsc_package(folder, image.candidate_id)


def dsc_package(folder: Path, where: str) -> SourcePackage:
    """What lies in a folder with one .dsc; OSError or KeyError when it is not whole."""
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
    at: Workshop, image: Image, package: str, wish: str | None, progress: Progress
) -> Path:
    volumes = tuple(
        (LIBEXEC / name, f"{INSIDE}/{name}", "ro") for name in ("list-sources", "fetch-source")
    )

    def fill(out: Path) -> None:
        progress(f"fetching the source of {package}")
        options = Options(
            network="host", capabilities=CAPABILITIES, volumes=(*volumes, (out, "/out", "rw"))
        )
        with running(
            at.engine, image.reference, "sleep", "infinity",
            purpose="source", log=at.log, options=options,
        ) as box:  # fmt: skip
            limit_s = min(LIMIT_S, at.deadline.left_s)
            listed = box.execute(f"{INSIDE}/list-sources", package, limit_s=limit_s)
            if not listed.ok:
                raise refusal(listed, f"the sources of {image.candidate_id}", at.log)
            _first_that_is_there(at, box, package, fitting(package, wish, listed.stdout), progress)

    return shelved("debian", content_key([image.key, package, wish]), at.deadline, fill)


def _first_that_is_there(
    at: Workshop, box: Container, package: str, versions: list[str], progress: Progress
) -> None:
    """Archives of old releases list what they no longer have: then an older one is used."""
    for version in versions:
        limit_s = min(LIMIT_S, at.deadline.left_s)
        done = box.execute(f"{INSIDE}/fetch-source", package, version, limit_s=limit_s)
        if done.ok:
            return
        last = version == versions[-1]
        if last or GONE.search(f"{done.stdout}{done.stderr}") is None:
            raise refusal(done, f"the source {package} {version}", at.log)
        progress(f"the archive no longer holds the source {version}")


def fitting(package: str, wish: str | None, output: str) -> list[str]:
    """The versions that apt's list of sources offers and that answer, newest first."""
    listed = Deb822.iter_paragraphs(output, use_apt_pkg=False)
    offered = [str(each["Version"]) for each in listed if each.get("Package") == package]
    found = {version for version in offered if wish is None or answers(version, wish)}
    if not found:
        raise SourceError(
            f"source package {package}: wanted {wish or 'any version'}; "
            f"available: {', '.join(dict.fromkeys(offered)) or 'none'}",
            hint="correct build.source.version, or name another source",
        )
    return sorted(found, key=Version, reverse=True)


def refusal(done: Completed, what: str, log: Path) -> DsbisectError:
    """The error that a failed fetch stands for."""
    output = f"{done.stdout}\n{done.stderr}"
    if done.timed_out:
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

    return spec_package(shelved("srpm", digest[:16], at.deadline, fill), path.name)


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


def spec_package(folder: Path, origin: str) -> SourcePackage:
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
