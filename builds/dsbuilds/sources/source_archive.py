"""A tree as one tar file: how a source gets to a build without becoming files of the host.

Whatever names and links a commit contains, its files are created only in the container
alone. git reads, and writes nothing.

A release archive becomes a tree the other way round: unpacked with care, since it is untrusted. The
standard library's own filter of members is not relied on: Python has it since 3.11.4 only, and
Debian 12 has 3.11.2. Nothing is ever written through a link, because links are made last.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from dsbuilds.sources.download import file_of
from dsbuilds.sources.source_tree import Tree, imported
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import BuildError, SourceError
from dsharness.model import TarballSource
from dsharness.process.command import atomic_write, writing
from dsharness.process.deadline import Deadline

MOST_BYTES = 2 << 30
LACKING = "a partial clone lacks files: git fetch --refetch --no-filter"
LINK, MODULE = "120000", "160000"
EPOCH = 1262304000  # of every file, where it does not matter when it changed

Wanted = Callable[[str], bool]


@dataclass(frozen=True, kw_only=True)
class Blob:
    """A file of a tree."""

    path: str
    mode: str
    digest: str


@dataclass(kw_only=True)
class Times:
    """When each file became what it is, as `make` sees it; kept from one archive to the next."""

    record: Path | None = None  # None: not needed

    def of(self, blobs: list[Blob]) -> dict[str, float]:
        """Path -> time; what did not change keeps its own."""
        if self.record is None:
            return {blob.path: EPOCH for blob in blobs}
        known, now = self._known(), time.time()
        entries = {blob.path: f"{blob.mode} {blob.digest}" for blob in blobs}
        times = {
            path: known[path][1] if known.get(path, ("", 0.0))[0] == entry else now
            for path, entry in entries.items()
        }
        kept = {path: (entry, times[path]) for path, entry in entries.items()}
        atomic_write(self.record, json.dumps(kept))
        return times

    def _known(self) -> dict[str, tuple[str, float]]:
        try:
            text = self.record.read_text(encoding="utf-8") if self.record else "{}"
            return {path: (str(entry), float(at)) for path, (entry, at) in json.loads(text).items()}
        except (OSError, ValueError):
            return {}


def archived(
    tree: Tree, target: Path, *, wanted: Wanted | None = None, times: Times | None = None
) -> None:
    """Write the tree's files to a tar file; BuildError when it lacks one, or leads elsewhere."""
    with writing(target), tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        add_to(tar, tree, wanted=wanted, times=times)


def add_to(
    tar: tarfile.TarFile,
    tree: Tree,
    *,
    top: str = "",
    wanted: Wanted | None = None,
    times: Times | None = None,
) -> None:
    """Add the tree's files to an open archive, below ``top``."""
    everything = blobs_of(tree)
    blobs = [blob for blob in everything if wanted is None or wanted(blob.path)]
    # `make` may only want to see that a folder is there.
    folders = {str(PurePosixPath(blob.path).parent) for blob in everything}
    for folder in sorted(folders - {"."}):
        tar.addfile(_folder(f"{top}/{folder}" if top else folder))
    changed = (times or Times()).of(blobs)
    with scratch_folder("tree") as work:
        for blob, size, stream in _contents(tree, blobs, Path(work) / "contents"):
            member = tarfile.TarInfo(f"{top}/{blob.path}" if top else blob.path)
            member.mtime = changed[blob.path]  # fractions are kept
            member.uname = member.gname = "root"
            if blob.mode == LINK:
                member.type = tarfile.SYMTYPE
                member.linkname = stream.read(size).decode(errors="surrogateescape")
                tar.addfile(member)
            else:
                member.size = size
                member.mode = 0o755 if int(blob.mode, 8) & 0o100 else 0o644
                tar.addfile(member, stream)


def _folder(path: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o755, EPOCH
    return member


def blobs_of(tree: Tree) -> list[Blob]:
    """Its files and links; not git's own folder, nor modules without files."""
    with scratch_folder("tree") as work:
        listing = Path(work) / "listing"
        done = tree.git.call("ls-tree", "-r", "-z", tree.id, into=listing)
        if not done.ok:
            raise BuildError(f"{tree.origin} cannot be read: {done.stderr.strip()}", hint=LACKING)
        listed = listing.read_bytes().decode(errors="surrogateescape")
    blobs = []
    for entry in filter(None, listed.split("\0")):
        facts, _, path = entry.partition("\t")
        mode, _, digest = facts.split()
        parts = path.split("/")
        if not {"", ".", ".."}.isdisjoint(parts):
            raise BuildError(f"{tree.origin} holds a file that leads elsewhere: {path!r}")
        if mode != MODULE and ".git" not in map(str.lower, parts):
            blobs.append(Blob(path=path, mode=mode, digest=digest))
    return blobs


def _contents(tree: Tree, blobs: list[Blob], work: Path) -> Iterator[tuple[Blob, int, BinaryIO]]:
    """Each file with its size, and a stream that stands at its content."""
    asked = "".join(f"{blob.digest}\n" for blob in blobs)
    sizes = tree.git.must("cat-file", "--batch-check", stdin=asked, what=f"read {tree.origin}")
    total = 0
    for blob, header in zip(blobs, sizes.splitlines(), strict=True):
        digest, kind, *size = header.split()
        if kind != "blob" or digest != blob.digest:
            raise BuildError(f"{tree.origin} lacks the file {blob.path} ({header})", hint=LACKING)
        total += int(size[0])
    if total > MOST_BYTES:
        raise BuildError(f"{tree.origin} is a source of {total >> 20} MiB, which is too much")
    with writing(work):
        # a header is that of the check, and an end of line follows each content
        most_bytes = total + len(sizes) + len(blobs)
        done = tree.git.call("cat-file", "--batch", stdin=asked, into=work, into_bytes=most_bytes)
    if not done.ok:
        raise BuildError(f"{tree.origin} cannot be read: {done.stderr.strip()}", hint=LACKING)
    with work.open("rb") as stream:
        for blob in blobs:
            size_bytes = int(stream.readline().split()[2])
            begin = stream.tell()
            yield blob, size_bytes, stream
            stream.seek(begin + size_bytes + 1)


MOST_UNPACKED = 4 * 1024**3
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
        if size > MOST_UNPACKED or count > MOST_FILES:
            raise SourceError(
                f"{archive}: it holds more than {MOST_UNPACKED >> 30} GiB or {MOST_FILES:_} files",
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
