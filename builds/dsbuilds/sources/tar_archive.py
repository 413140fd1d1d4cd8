"""A tar archive of somebody else: looked through whole, bounded, then unpacked with care.

It is first unpacked to a plain tar file, to its very end: so a damage anywhere is seen before
anything is written, and what follows the end of the tar, too. A header may take little, since the
standard library holds each in memory. Its own filter of members is not relied on: Python has it
since 3.11.4 only, and Debian 12 has 3.11.2. Nothing is ever written through a link, because links
are made last.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from dsbuilds.sources.download import file_of
from dsbuilds.sources.source_tree import Tree, imported
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import DeadlineError, SourceError
from dsharness.guarded_files import regular_file
from dsharness.model import TarballSource
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline

MOST_UNPACKED = 4 << 30
MOST_FILES = 200_000
MOST_TAR = MOST_UNPACKED + (1 << 30)  # with its headers
MOST_HEADER = 16 << 10  # of a member, with its long names and what pax says of it
MOST_WORDS = 100  # of a pax header; each member has a copy of those that hold for all
DEEPEST = 100  # folders in one another
LONGEST, LONGEST_PART = 1024, 255  # bytes of a path
XZ_MEMORY = 256 << 20  # of `xz -9` it is 65 MiB; a header may ask for 4 GiB
UNPACK_S = 600.0
BLOCK = 1 << 16
SHOWN = 80  # characters of a name in a message
HINT = "name a tar archive (.tar.gz, .tar.bz2, .tar.xz); `tar -tvf` lists what is in it"


def tarball_tree(source: TarballSource, deadline: Deadline) -> Tree:
    """Return the archive's files; the one folder that release archives have is left out."""
    path = file_of(source.location, source.sha256, deadline)
    with scratch_folder("tarball") as folder:
        unpacked = Path(folder)
        unpack(path, unpacked, deadline)
        entries = list(unpacked.iterdir())
        if not entries:
            raise SourceError(f"{path}: the archive is empty", hint="name another archive")
        only = entries[0]
        single = len(entries) == 1 and only.is_dir() and not only.is_symlink()
        return imported(only if single else unpacked, f"the archive {path.name}")


def unpack(archive: Path, folder: Path, deadline: Deadline) -> None:
    """Files, folders and links that stay inside an empty folder; anything else is refused."""
    with checked_tar(archive, deadline) as (tar, members), writing(folder):
        _write_out(archive, tar, members, folder, deadline)


@contextmanager
def checked_tar(
    archive: Path, deadline: Deadline
) -> Iterator[tuple[tarfile.TarFile, list[tarfile.TarInfo]]]:
    """Yield an archive, and all that is in it; SourceError if it is damaged, or means no good."""
    try:
        with scratch_folder("archive") as work, _plain(archive, work, deadline) as stream:
            bounded = _Bounded(archive, stream)
            with tarfile.open(fileobj=bounded, mode="r:") as tar:  # type: ignore[call-overload]
                members = list(_checked(archive, tar, bounded, deadline))
                _check_end(archive, tar, stream)
                bounded.left = None
                yield tar, members
    except (tarfile.TarError, EOFError, ValueError, RecursionError, OverflowError) as error:
        raise _not_unpacked(archive, error) from error


@contextmanager
def _plain(archive: Path, work: Path, deadline: Deadline) -> Iterator[BinaryIO]:
    """Yield the tar as a file without compression, to its last byte."""
    with _opened(archive) as packed:
        first = packed.read(6)
        packed.seek(0)
        if not first.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x5d\0\0")):
            yield packed
            return
        plain = work / "plain.tar"
        with writing(plain), plain.open("xb") as out:
            for block in _unpacked_blocks(archive, packed, first):
                if out.tell() + len(block) > MOST_TAR:
                    raise _too_large(archive)
                _hurry(archive, deadline)
                out.write(block)
    with plain.open("rb") as stream:
        yield stream


@contextmanager
def _opened(archive: Path) -> Iterator[BinaryIO]:
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(regular_file(archive))
        except OSError as error:
            raise _not_unpacked(archive, error) from error
        yield stream


def _unpacked_blocks(archive: Path, packed: BinaryIO, first: bytes) -> Iterator[bytes]:
    try:
        if first.startswith(b"\x1f\x8b"):
            yield from _blocks(gzip.GzipFile(fileobj=packed))
        elif first.startswith(b"BZh"):
            yield from _blocks(bz2.BZ2File(packed))
        else:
            yield from _xz_blocks(packed)
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _not_unpacked(archive, error) from error


def _blocks(stream: io.BufferedIOBase) -> Iterator[bytes]:
    while block := stream.read(BLOCK):
        yield block


def _xz_blocks(packed: BinaryIO) -> Iterator[bytes]:
    """Yield what lzma.open gives, which would take as much memory as the archive asks for."""
    data = packed.read(BLOCK)
    while data:
        decoder = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
        while not decoder.eof:
            if decoder.needs_input:
                data = data or packed.read(BLOCK)
                if not data:
                    raise EOFError("it ends early")
            yield decoder.decompress(data, BLOCK)
            data = b""
        data = decoder.unused_data.lstrip(b"\0") or packed.read(BLOCK).lstrip(b"\0")


class _Bounded:
    """A plain tar file of which a header may take little; tarfile asks for nothing else."""

    def __init__(self, archive: Path, stream: BinaryIO) -> None:
        self._archive, self._stream = archive, stream
        self.left: int | None = MOST_HEADER  # of this header; None: contents are read
        self.seek, self.tell, self.close = stream.seek, stream.tell, stream.close

    def read(self, size: int = -1) -> bytes:
        """Read as many bytes; SourceError when a header asks for more than any needs."""
        if self.left is not None:
            self.left -= size
            if size < 0 or self.left < 0:
                raise SourceError(
                    f"{self._archive}: a header of more than {MOST_HEADER >> 10} KiB, at byte "
                    f"{self._stream.tell()}",
                    hint=HINT,
                )
        return self._stream.read(size)


def _checked(
    archive: Path, tar: tarfile.TarFile, bounded: _Bounded, deadline: Deadline
) -> Iterator[tarfile.TarInfo]:
    size = 0
    for count, member in enumerate(tar, start=1):
        bounded.left = MOST_HEADER
        _hurry(archive, deadline)
        reason = objection(member)
        if reason is not None:
            raise _refused(archive, member, reason)
        size += member.size
        if size > MOST_UNPACKED or count > MOST_FILES:
            raise _too_large(archive)
        yield member


def _check_end(archive: Path, tar: tarfile.TarFile, stream: BinaryIO) -> None:
    """Refuse what tarfile would leave unread: it takes a damaged header for the end."""
    stream.seek(tar.offset)
    while block := stream.read(BLOCK):
        if block.strip(b"\0"):
            raise SourceError(
                f"{archive}: it is damaged, or something follows its end, after byte {tar.offset}",
                hint=HINT,
            )


def _write_out(
    archive: Path,
    tar: tarfile.TarFile,
    members: Sequence[tarfile.TarInfo],
    folder: Path,
    deadline: Deadline,
) -> None:
    """Owners, times and special bits of the archive are left out; git keeps none of them."""
    links = [member for member in members if member.issym()]
    for member in (*(member for member in members if not member.issym()), *links):
        _hurry(archive, deadline)
        try:
            _write(tar, member, folder)
        except (FileNotFoundError, PermissionError) as error:  # of a hard link
            raise _refused(
                archive, member, f"links to {_short(member.linkname)}, no file in it"
            ) from error
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise _refused(archive, member, "is in it twice, as different things") from error
    top = folder.resolve()
    for member in links:  # one link may lead out by way of another
        _hurry(archive, deadline)
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


def objection(member: tarfile.TarInfo) -> str | None:
    """Return why a member may not be unpacked; None when it may."""
    return next(_objections(member), None)


def _objections(member: tarfile.TarInfo) -> Iterator[str]:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        yield "leads out of the archive"
    if ".git" in path.parts:
        yield "belongs to git itself"
    if len(path.parts) > DEEPEST:
        yield f"is more than {DEEPEST} folders deep"
    if not (_can_be_named(member.name) and _can_be_named(member.linkname)):
        yield "has, or leads to, a name that no file can have"
    if member.size < 0:
        yield "has no size"
    if len(member.pax_headers) > MOST_WORDS:
        yield f"has a header of over {MOST_WORDS} words"
    if member.issparse():
        yield "has holes"
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        yield "is neither a file, a folder nor a link"
    if (member.issym() or member.islnk()) and _astray(member, path):
        yield "links out of the archive"


def _can_be_named(name: str) -> bool:
    parts = name.encode(errors="surrogateescape").split(b"/")
    whole = sum(map(len, parts)) + len(parts)
    return "\0" not in name and whole <= LONGEST and max(map(len, parts)) <= LONGEST_PART


def _astray(member: tarfile.TarInfo, path: PurePosixPath) -> bool:
    """A hard link counts from the archive's top, a symbolic one from where it lies."""
    target = PurePosixPath(member.linkname)
    depth = 0 if member.islnk() else len(path.parts) - 1
    for part in target.parts:
        depth += -1 if part == ".." else 0 if part == "." else 1
        if depth < 0:
            break
    return target.is_absolute() or depth < 0


def _hurry(archive: Path, deadline: Deadline) -> None:
    if deadline.passed:
        raise DeadlineError(f"{archive}: unpacking it took too long", hint="run it again")


def _refused(archive: Path, member: tarfile.TarInfo, reason: str) -> SourceError:
    return SourceError(f"{archive}: {_short(member.name)} {reason}", hint="it is not unpacked")


def _short(name: str) -> str:
    return repr(name if len(name) <= SHOWN else f"{name[:SHOWN]}…")


def _too_large(archive: Path) -> SourceError:
    return SourceError(
        f"{archive}: it holds more than {MOST_UNPACKED >> 30} GiB or {MOST_FILES:_} files",
        hint="it is not unpacked",
    )


def _not_unpacked(archive: Path, error: Exception) -> SourceError:
    return SourceError(f"{archive}: it cannot be unpacked: {error}"[:500], hint=HINT)
