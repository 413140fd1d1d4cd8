"""A release archive as a tree: unpacked with suspicion, for it is somebody's file."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from dsbuilds.sources.download import file_of
from dsbuilds.trees import Tree, imported
from dsharness.commands import writing
from dsharness.errors import SourceError
from dsharness.model import TarballSource
from dsharness.waiting import Deadline

MOST_BYTES = 4 * 1024**3
MOST_FILES = 200_000


def tarball_tree(source: TarballSource, deadline: Deadline) -> Tree:
    """The archive's files; the one folder that release archives have is left out."""
    path = file_of(source.location, source.sha256, deadline)
    with tempfile.TemporaryDirectory(prefix="dsbisect-tarball-") as folder:
        unpacked = Path(folder)
        unpack(path, unpacked)
        entries = list(unpacked.iterdir())
        if not entries:
            raise SourceError(f"{path}: the archive is empty", hint="name another archive")
        single = entries[0] if len(entries) == 1 and entries[0].is_dir() else unpacked
        return imported(single, f"the archive {path.name}")


def unpack(archive: Path, folder: Path) -> None:
    """Files, folders and links that stay inside; anything else is refused, whole or not at all."""
    try:
        with tarfile.open(archive) as tar:
            members = list(_checked(archive, tar))
            with writing(folder):
                tar.extractall(folder, members=members, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise SourceError(
            f"{archive}: it cannot be unpacked: {error}",
            hint="name a tar archive (.tar.gz, .tar.bz2, .tar.xz); `tar -tvf` lists what is in it",
        ) from error


def _checked(archive: Path, tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    size = 0
    for count, member in enumerate(tar, start=1):
        size += member.size
        reason = objection(member)
        if reason is not None:
            raise SourceError(f"{archive}: {member.name!r} {reason}", hint="it is not unpacked")
        if size > MOST_BYTES or count > MOST_FILES:
            raise SourceError(
                f"{archive}: it holds more than {MOST_BYTES >> 30} GiB or {MOST_FILES:_} files",
                hint="it is not unpacked",
            )
        yield member


def objection(member: tarfile.TarInfo) -> str | None:
    """Why a member may not be unpacked; None when it may."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        return "leads out of the archive"
    if ".git" in path.parts:
        return "belongs to git itself"
    if member.issym() or member.islnk():
        return _astray(member, path)
    if not (member.isfile() or member.isdir()):
        return "is neither a file, a folder nor a link"
    return None


def _astray(member: tarfile.TarInfo, path: PurePosixPath) -> str | None:
    """A hard link counts from the archive's top, a symbolic one from where it lies."""
    target = PurePosixPath(member.linkname)
    depth = 0 if member.islnk() else len(path.parts) - 1
    for part in target.parts:
        depth += -1 if part == ".." else 0 if part == "." else 1
        if depth < 0:
            break
    return "links out of the archive" if target.is_absolute() or depth < 0 else None
