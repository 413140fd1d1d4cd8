"""Files of untrusted origin, read from the host: no link is followed, none is trusted.

A build may leave links to any file of the host, pipes that never end, folders without a bottom. All
that the host does with such a folder goes through here: each part of a path is opened by itself,
as what it is.

The output of a build is copied by the lab, with its own modes, links unchanged. A rename would keep
what the build can still reach or has marked: open files, hard links to other places, setuid bits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from dsbuilds.failure_reason import UnbuildableError
from dsharness.containers.engine import last_line
from dsharness.containers.lab_folders import YOUNG_S, locked_folder
from dsharness.content_key import content_key, file_sha256
from dsharness.errors import EngineError
from dsharness.guarded_files import opened, regular_file
from dsharness.process.command import run, writing

MOST_BYTES = 4 << 30
MOST_ENTRIES = 300_000
DEEPEST = 100  # folders in one another
ENTRY_BYTES = 4096  # at least, so that many empty files are not for nothing
NO_LONGER = {errno.EINVAL, errno.ELOOP, errno.ENOENT, errno.ENXIO}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file, a link or something odd; it can be opened while the walk stands at it."""

    path: str  # below the folder
    facts: os.stat_result
    folder: int  # an open descriptor of where it lies

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.facts.st_mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.facts.st_mode)

    @property
    def runs(self) -> bool:
        """Whether its owner may run it; all other bits of its mode are left behind."""
        return bool(self.facts.st_mode & stat.S_IXUSR)

    @property
    def leads_to(self) -> str:
        """The target of a link; it may not exist."""
        return os.readlink(self.name, dir_fd=self.folder)

    def copy(self, out: BinaryIO) -> None:
        """Write a file's content; UnbuildableError if it is no longer a file."""
        try:
            with regular_file(self.name, below=self.folder) as stream:
                shutil.copyfileobj(stream, out, 1 << 20)
        except OSError as error:
            if error.errno not in NO_LONGER:
                raise
            raise UnbuildableError(f"{self.path} is no longer a file") from error


def entries(folder: Path, *parts: str) -> Iterator[Entry]:
    """Everything below a folder except folders, sorted; ``parts`` lead to it from the lab's own.

    FileNotFoundError or NotADirectoryError when there is no such folder, or a link in its place.
    UnbuildableError when it holds more than any build has a reason to.
    """
    size = count = 0
    with opened(folder, *parts) as top:
        for place, folders, files, descriptor in os.fwalk(".", dir_fd=top, onerror=_raised):
            folders.sort()
            below = place.removeprefix(".").lstrip("/")
            if below.count("/") >= DEEPEST:
                raise UnbuildableError(f"it left more than {DEEPEST} folders in one another")
            for name in sorted([*files, *folders]):
                facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                count, size = count + 1, size + facts.st_size
                if count > MOST_ENTRIES or size > MOST_BYTES:
                    raise UnbuildableError(
                        f"it left more than {MOST_BYTES >> 30} GiB or {MOST_ENTRIES:_} files"
                    )
                if not stat.S_ISDIR(facts.st_mode):
                    path = f"{below}/{name}" if below else name
                    yield Entry(path=path, facts=facts, folder=descriptor)


def size_of(folder: Path) -> int:
    """Bytes on disk below a folder; what goes meanwhile counts nothing, depth counts as endless."""
    total = 0
    for place, folders, files, descriptor in os.fwalk(folder):
        if len(Path(place).parts) - len(folder.parts) > DEEPEST:
            return 1 << 62
        for name in (*files, *folders):
            try:
                facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue
            total += max(facts.st_blocks * 512, ENTRY_BYTES)
    return total


def removed(folder: Path) -> None:
    """Remove a folder with untrusted content, however deep, even without permissions."""
    # rm and chmod follow no link below what they are given, and know no depth that is too much.
    for command in (("rm", "-rf"), ("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        if not os.path.lexists(folder):
            return
        result = run([*command, "--", str(folder)], cleanup=True)
    if os.path.lexists(folder):
        raise EngineError(f"{folder} cannot be removed: {last_line(result)}")


def _raised(error: OSError) -> None:
    raise UnbuildableError(f"it left a folder that cannot be read: {error.filename}") from error


def temporary_name(parent: Path, kind: str) -> Path:
    return parent / f"{kind}-{secrets.token_hex(6)}"


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Make it, and remove it at the end; ``folder`` has a ``temporary_name``."""
    _remove_left(folder.parent, folder.name.rpartition("-")[0])
    with writing(folder):
        folder.mkdir(parents=True)
    with locked_folder(folder):
        try:
            yield folder
        finally:
            removed(folder)


def _remove_left(parent: Path, kind: str) -> None:
    """All that no process holds any more; the kernel releases a lock however its process ends."""
    for folder in parent.glob(f"{kind}-*"):
        with contextlib.suppress(OSError):  # another process may be removing it
            if time.time() - folder.stat().st_mtime > YOUNG_S:
                with locked_folder(folder):
                    removed(folder)


PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:^%-]{0,250}")

Keep = Callable[[Entry], bool]


def copy_output(folder: Path, *parts: str, target: Path, keep: Keep | None = None) -> None:
    """Copy what ``parts`` lead to below ``folder``; UnbuildableError if it is not a folder.

    Files, and links that stay inside; pipes, devices and links that lead out are left behind.
    """
    try:
        with writing(target):
            target.mkdir()
            for entry in entries(folder, *parts):
                if keep is None or keep(entry):
                    _take(entry, target / entry.path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnbuildableError(f"unbuildable: it left no folder {'/'.join(parts)}") from error


def plain_file(entry: Entry, *, below: tuple[str, ...] = ("",)) -> bool:
    """Whether it is a plainly named file in one of these folders; UnbuildableError when not."""
    folder, _, name = entry.path.rpartition("/")
    if not entry.is_file or folder not in below or PLAIN.fullmatch(name) is None:
        raise UnbuildableError(f"it left {entry.path!r}, where only files with plain names may be")
    return True


def stays_inside(path: str, leads_to: str) -> bool:
    """Return whether a link can be followed from the top without ever leaving it."""
    parts = PurePosixPath(leads_to).parts
    up = len([part for part in parts if part == ".."])
    # After a name, "..": what the name stands for may be a link itself.
    return not leads_to.startswith("/") and up <= path.count("/") and ".." not in parts[up:]


def _take(entry: Entry, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.is_link and stays_inside(entry.path, entry.leads_to):
        target.symlink_to(entry.leads_to)
    elif entry.is_file:
        with target.open("xb") as out:
            entry.copy(out)
        target.chmod(0o755 if entry.runs else 0o644)


def content_of(folder: Path) -> str:
    """Hash path, kind and content of each file; neither owners nor times; no link is followed."""
    fingerprints = {}
    for place, folders, files in os.walk(folder):
        for name in [
            *files,
            *(folder_name for folder_name in folders if Path(place, folder_name).is_symlink()),
        ]:
            path = Path(place, name)
            fingerprints[str(path.relative_to(folder))] = _fingerprint(path)
    return content_key(fingerprints)


def _fingerprint(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if not path.is_file():
        return "special"
    runs = "x" if path.stat().st_mode & 0o111 else "-"
    return runs + file_sha256(path)
