"""The source package that a row's own distribution offers, by apt in a container of its image."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from debian.deb822 import Deb822
from debian.debian_support import Version

from dsbuilds.failure_reason import cause_of
from dsbuilds.sources.download import shelved
from dsbuilds.sources.source_package import SourcePackage
from dsharness.containers.container import Container, Options, running
from dsharness.content_key import content_key
from dsharness.errors import DeadlineError, DsbisectError, SourceError
from dsharness.model import Image
from dsharness.package_version import answers
from dsharness.process.command import Completed
from dsharness.progress import Progress
from dsimages.build_failure import UNREACHABLE, no_answer_or_a_refusal
from dsimages.buildah import Workshop

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
    return described(folder, image.candidate_id)


def described(folder: Path, where: str) -> SourcePackage:
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
