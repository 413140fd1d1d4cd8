"""A release archive as a tree: unpacked with care, since it is untrusted.

The standard library's own filter of members is not relied on: Python has it since 3.11.4 only, and
Debian 12 has 3.11.2. Nothing is ever written through a link, because links are made last.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dsbuilds.sources.download import file_of
from dsbuilds.sources.source_tree import Tree, imported
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import SourceError
from dsharness.model import TarballSource
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline

MOST_BYTES = 4 * 1024**3
MOST_FILES = 200_000


def tarball_tree(source: TarballSource, deadline: Deadline) -> Tree:
    """The archive's files; the one folder that release archives have is left out."""
    path = file_of(source.location, source.sha256, deadline)
    with scratch_folder("tarball") as folder:
        unpacked = Path(folder)
        unpack(path, unpacked)
        entries = list(unpacked.iterdir())
        if not entries:
            raise SourceError(f"{path}: the archive is empty", hint="name another archive")
        only = entries[0]
        single = len(entries) == 1 and only.is_dir() and not only.is_symlink()
        return imported(only if single else unpacked, f"the archive {path.name}")


def unpack(archive: Path, folder: Path) -> None:
    """Files, folders and links that stay inside an empty folder; anything else is refused."""
    try:
        with tarfile.open(archive) as tar:
            members = list(_checked(archive, tar))
            with writing(folder):
                _write_out(archive, tar, members, folder)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise SourceError(
            f"{archive}: it cannot be unpacked: {error}",
            hint="name a tar archive (.tar.gz, .tar.bz2, .tar.xz); `tar -tvf` lists what is in it",
        ) from error


def _write_out(
    archive: Path, tar: tarfile.TarFile, members: Sequence[tarfile.TarInfo], folder: Path
) -> None:
    """Owners, times and special bits of the archive are left out; git keeps none of them."""
    links = [member for member in members if member.issym()]
    for member in (*(each for each in members if not each.issym()), *links):
        try:
            _write(tar, member, folder)
        except (FileNotFoundError, PermissionError) as error:  # of a hard link
            raise _refused(
                archive, member, f"links to {member.linkname!r}, no file in it"
            ) from error
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise _refused(archive, member, "is in it twice, as different things") from error
    top = folder.resolve()
    for member in links:  # one link may lead out by way of another
        if not _leads_to(folder / member.name).is_relative_to(top):
            raise _refused(archive, member, "links out of the archive")


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    place = folder / member.name
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        place.symlink_to(member.linkname)
    elif member.islnk():
        place.hardlink_to(folder / member.linkname)
    else:
        with tar.extractfile(member) or io.BytesIO() as content, place.open("wb") as out:
            shutil.copyfileobj(content, out)
        place.chmod(0o755 if member.mode & 0o100 else 0o644)


def _leads_to(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a circle of links leads nowhere
        return link.parent.resolve()


def _refused(archive: Path, member: tarfile.TarInfo, reason: str) -> SourceError:
    return SourceError(f"{archive}: {member.name!r} {reason}", hint="it is not unpacked")


def _checked(archive: Path, tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    size = 0
    for count, member in enumerate(tar, start=1):
        size += member.size
        reason = objection(member)
        if reason is not None:
            raise _refused(archive, member, reason)
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
