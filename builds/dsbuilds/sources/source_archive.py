"""A tree as one tar file: how a source gets to a build without becoming files of the host.

Whatever names and links a commit contains, its files are created only in the container
alone. git reads, and writes nothing.
"""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from dsbuilds.sources.source_tree import Tree
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import BuildError
from dsharness.process.command import atomic_write, writing

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
        """Return path -> time; what did not change keeps its own."""
        if self.record is None:
            return {blob.path: EPOCH for blob in blobs}
        recorded, now_s = self._known(), time.time()
        entries = {blob.path: f"{blob.mode} {blob.digest}" for blob in blobs}
        times = {
            path: recorded[path][1] if recorded.get(path, ("", 0.0))[0] == entry else now_s
            for path, entry in entries.items()
        }
        record = {path: (entry, times[path]) for path, entry in entries.items()}
        atomic_write(self.record, json.dumps(record))
        return times

    def _known(self) -> dict[str, tuple[str, float]]:
        try:
            text = self.record.read_text(encoding="utf-8") if self.record else "{}"
            return {
                path: (str(entry), float(time_s))
                for path, (entry, time_s) in json.loads(text).items()
            }
        except (OSError, ValueError):
            return {}


def archived(
    tree: Tree, target: Path, *, include: Wanted | None = None, times: Times | None = None
) -> None:
    """Write the tree's files to a tar file; BuildError when it lacks one, or leads elsewhere."""
    with writing(target), tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        add_to(tar, tree, include=include, times=times)


def add_to(
    tar: tarfile.TarFile,
    tree: Tree,
    *,
    top: str = "",
    include: Wanted | None = None,
    times: Times | None = None,
) -> None:
    """Add the tree's files to an open archive, below ``top``."""
    all_blobs = blobs_of(tree)
    blobs = [blob for blob in all_blobs if include is None or include(blob.path)]
    # `make` may only want to see that a folder is there.
    folders = {str(PurePosixPath(blob.path).parent) for blob in all_blobs}
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
    """Return its files and links; not git's own folder, nor modules without files."""
    with scratch_folder("tree") as work:
        listing = Path(work) / "listing"
        result = tree.git.call("ls-tree", "-r", "-z", tree.id, into=listing)
        if not result.ok:
            raise BuildError(f"{tree.origin} cannot be read: {result.stderr.strip()}", hint=LACKING)
        entries = listing.read_bytes().decode(errors="surrogateescape")
    blobs = []
    for entry in filter(None, entries.split("\0")):
        facts, _, path = entry.partition("\t")
        mode, _, digest = facts.split()
        parts = path.split("/")
        if not {"", ".", ".."}.isdisjoint(parts):
            raise BuildError(f"{tree.origin} holds a file that leads elsewhere: {path!r}")
        if mode != MODULE and ".git" not in map(str.lower, parts):
            blobs.append(Blob(path=path, mode=mode, digest=digest))
    return blobs


def _contents(tree: Tree, blobs: list[Blob], work: Path) -> Iterator[tuple[Blob, int, BinaryIO]]:
    """Yield each file with its size, and a stream that stands at its content."""
    digests = "".join(f"{blob.digest}\n" for blob in blobs)
    sizes = tree.git.must("cat-file", "--batch-check", stdin=digests, what=f"read {tree.origin}")
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
        result = tree.git.call(
            "cat-file", "--batch", stdin=digests, into=work, into_bytes=most_bytes
        )
    if not result.ok:
        raise BuildError(f"{tree.origin} cannot be read: {result.stderr.strip()}", hint=LACKING)
    with work.open("rb") as stream:
        for blob in blobs:
            size_bytes = int(stream.readline().split()[2])
            begin = stream.tell()
            yield blob, size_bytes, stream
            stream.seek(begin + size_bytes + 1)
