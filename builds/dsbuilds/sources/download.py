"""A file that a user names by path or URL: bounded, https only, its digest checked."""

from __future__ import annotations

import http.client
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dsbuilds.sandbox.untrusted_files import temporary_folder, temporary_name
from dsbuilds.sources.source_tree import Tree, own_repository
from dsharness.containers.lab_folders import private
from dsharness.content_key import content_key, file_sha256
from dsharness.errors import (
    DeadlineError,
    DiskFullError,
    RefusedError,
    SourceError,
    UnreachableError,
)
from dsharness.paths import cache_home
from dsharness.process.command import atomic_write, disk_error, writing
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive


def shelved(kind: str, key: str, deadline: Deadline, fill: Callable[[Path], None]) -> Path:
    """Return the folder of that key; ``fill`` gets an empty one when there is none yet."""
    shelf = private(cache_home() / "sources") / kind
    folder = shelf / key
    with exclusive(shelf / f"{key}.lock", deadline):
        if folder.is_dir():
            return folder
        with temporary_folder(temporary_name(shelf, ".draft")) as draft, writing(draft):
            fill(draft)
            draft.rename(folder)
    return folder


def recorded(identity: str, origin: str, revision: str, unpacked: Callable[[], Tree]) -> Tree:
    """Return the tree of that identity: known, or unpacked now."""
    record = cache_home() / "sources" / "trees" / content_key(identity)
    git = own_repository()
    try:
        tree_id = record.read_text(encoding="utf-8").strip()
    except OSError:
        tree_id = ""
    if not tree_id or not git.call("cat-file", "-e", f"{tree_id}^{{tree}}").ok:
        tree_id = unpacked().id
        atomic_write(record, f"{tree_id}\n")
    return Tree(git=git, id=tree_id, origin=origin, revision=revision)


MOST_BYTES = 1024**3
BLOCK = 1 << 20
SERVER_FAILS = 500  # HTTP statuses from here on say nothing of what was asked for
PAUSE_LIMIT_S = 60.0  # without a byte
URL = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
CENTRAL, OWN_MIRROR = "https://repo1.maven.org/maven2/", "DSBISECT_MIRROR_MAVEN"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~^-]{0,200}")


def file_of(location: str, sha256: str | None, deadline: Deadline) -> Path:
    """Return the file itself, or what the URL leads to, kept by URL and digest."""
    path = here(location)
    if path is not None:
        check_digest(path, sha256, location)
        return path
    name = _name_in(location)

    def fill(folder: Path) -> None:
        download(mirrored(location), folder / name, deadline)
        check_digest(folder / name, sha256, location)

    return shelved("files", content_key([location, sha256]), deadline, fill) / name


def mirrored(url: str) -> str:
    """Return where it is fetched from: Maven Central may have a mirror of the user's own."""
    mirror = os.environ.get(OWN_MIRROR)
    if not mirror or not url.startswith(CENTRAL):
        return url
    return f"{mirror.rstrip('/')}/{url.removeprefix(CENTRAL)}"


def here(location: str) -> Path | None:
    """Return the full path of a file on this machine; None for a URL that may be fetched."""
    if URL.match(location) is not None:
        _refuse_plain(location)
        return None
    path = Path(location).absolute()  # it may be mounted into a container
    if not path.is_file():
        raise SourceError(
            f"{location}: there is no such file", hint="name an existing file or an https URL"
        )
    return path


def check_digest(path: Path, sha256: str | None, location: str) -> None:
    """Refuse a file whose digest is not the promised one."""
    if sha256 is None:
        return
    actual = file_sha256(path)
    if actual != sha256:
        raise SourceError(
            f"{location}: its sha256 is {actual}, but {sha256} was promised",
            hint="a new release under an old name, or a damaged copy: check it, then correct "
            "build.source.sha256",
        )


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follows a redirection as long as it stays with https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: object,
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        _refuse_plain(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def download(url: str, target: Path, deadline: Deadline) -> None:
    """Fetch by https only, within the deadline and a limit of size."""
    _refuse_plain(url)
    opener = urllib.request.build_opener(_HttpsOnly())
    try:
        with (
            opener.open(url, timeout=min(PAUSE_LIMIT_S, max(deadline.left_s, 1.0))) as answer,
            target.open("wb") as out,
        ):
            _copy(answer, out, url, deadline)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        full = disk_error(error, target) if isinstance(error, OSError) else None
        if isinstance(full, DiskFullError):
            raise full from error
        answered = isinstance(error, urllib.error.HTTPError) and error.code < SERVER_FAILS
        raise (RefusedError if answered else UnreachableError)(
            f"{url} cannot be fetched: {getattr(error, 'reason', None) or error}",
            hint="check the network and its proxy; a file that is here can be named by its path",
        ) from error


def _copy(answer: BinaryIO, out: BinaryIO, url: str, deadline: Deadline) -> None:
    size = 0
    while block := answer.read(BLOCK):
        size += len(block)
        if size > MOST_BYTES:
            raise SourceError(f"{url}: it is larger than {MOST_BYTES >> 30} GiB")
        if deadline.passed:
            raise DeadlineError(f"{url}: fetching it timed out", hint="run it again")
        out.write(block)


def _refuse_plain(url: str) -> None:
    if urllib.parse.urlsplit(url).scheme.lower() != "https":
        raise SourceError(f"{url}: only https URLs are fetched", hint="name an https URL or a file")


def _name_in(url: str) -> str:
    name = Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path)).name
    if PLAIN.fullmatch(name) is None:
        raise SourceError(f"{url}: it names no file", hint="name the file itself, not its folder")
    return name
