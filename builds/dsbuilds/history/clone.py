"""The lab's own copy of a repository: fetched from a URL, or borrowing a local one's objects.

A local repository is read and nothing else: no command that could write runs in it, and nothing
that it configures is asked for. Its refs are copied, its objects are found where they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.git import Git, git
from dsharness.containers.engine import last_line
from dsharness.content_key import content_key
from dsharness.errors import SourceError
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline

HEAD = "refs/dsbisect/HEAD"  # what the user had checked out
BRANCHES_AND_TAGS = ("refs/heads", "refs/tags", "refs/remotes")
TRANSPORTS = ("https", "http", "ssh", "git", "file")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a repository is: a URL, or the folders of a local one."""

    source: str
    folder: Path | None = None
    objects: Path | None = None
    shallow: Path | None = None

    @property
    def key(self) -> str:
        return content_key(str(self.folder or self.source))

    @property
    def remotes(self) -> tuple[str, ...]:
        """URLs of the repository and of where it was cloned from."""
        if self.folder is None:
            return (self.source,)
        listed = git(
            "--git-dir", str(self.folder), "config", "-z", "--get-regexp", r"^remote\..*\.url$"
        )
        return tuple(entry.partition("\n")[2] for entry in listed.stdout.split("\0") if entry)


def origin_of(source: str) -> Origin:
    """What a user's word for a repository means."""
    path = Path(source).expanduser()
    if not path.exists():
        return _remote(source)
    found = git(
        "-C", str(path if path.is_dir() else path.parent), "rev-parse", "--path-format=absolute",
        "--absolute-git-dir", "--git-path", "objects", "--git-path", "shallow",
    )  # fmt: skip
    places = [Path(line).resolve() for line in found.stdout.splitlines()]
    if not path.is_dir() or not found.ok or len(places) != 3:
        raise SourceError(
            f"{source} is not a git repository",
            hint="name a checkout, a bare repository or a URL",
        )
    return Origin(source=source, folder=places[0], objects=places[1], shallow=places[2])


def bring_up_to_date(copy: Git, origin: Origin, limit: Deadline) -> None:
    """Let the copy know all that its origin knows now."""
    if origin.folder is None:
        _fetch(copy, origin.source, limit)
    else:
        _borrow(copy, origin, origin.folder)
    if (copy.folder / "HEAD").read_text(encoding="utf-8") != f"ref: {HEAD}\n":
        copy.must("symbolic-ref", "HEAD", HEAD, what=f"note what {origin.source} has checked out")


def _remote(source: str) -> Origin:
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", source)
    like_scp = re.match(r"[^/:\s-][^/:\s]*:(?!:)\S", source)
    if scheme is not None and scheme[1] not in TRANSPORTS:
        raise SourceError(
            f"{source}: no repository is fetched by {scheme[1]}://",
            hint=f"what works: {', '.join(TRANSPORTS)}, user@host:path, or a folder",
        )
    if scheme is None and like_scp is None:
        raise SourceError(
            f"{source} does not exist", hint="name a checkout, a bare repository or a URL"
        )
    return Origin(source=source)


def _fetch(copy: Git, source: str, limit: Deadline) -> None:
    everything = [f"+{place}/*:{place}/*" for place in BRANCHES_AND_TAGS]
    # A shallow origin that was completed must be seen here, too.
    whole = ["--unshallow"] if (copy.folder / "shallow").exists() else []
    for head in ([f"+HEAD:{HEAD}"], []):  # the origin's HEAD may lead nowhere
        done = copy.call(
            "fetch", "--quiet", "--no-auto-maintenance", "--prune", "--force", "--no-tags",
            "--no-write-fetch-head", "--no-recurse-submodules", "--update-shallow", *whole,
            "--", source, *head, *everything, limit_s=limit.left_s, users=True,
        )  # fmt: skip
        if done.ok or "remote ref HEAD" not in done.stderr:
            break
    if not done.ok:
        raise SourceError(
            f"{source} cannot be fetched: {last_line(done)}",
            hint="check the address, the network and who may read it",
        )


def _borrow(copy: Git, origin: Origin, folder: Path) -> None:
    objects = str(origin.objects)
    if "\n" in objects or objects.startswith(('"', "#")):
        raise SourceError(
            f"{origin.source}: a repository at {objects!r} cannot be borrowed from",
            hint="clone it to a folder with a plain name",
        )
    atomic_write(copy.folder / "objects" / "info" / "alternates", f"{objects}\n")
    if origin.shallow is not None and origin.shallow.exists():
        atomic_write(copy.folder / "shallow", origin.shallow.read_text(encoding="ascii"))
    else:
        (copy.folder / "shallow").unlink(missing_ok=True)
    wanted, held = _refs_of_origin(Git(folder=folder)), _refs(copy, HEAD)
    stale = [f"delete {name}\n" for name in held if name not in wanted]
    fresh = [
        f"update {name} {value}\n" for name, value in wanted.items() if held.get(name) != value
    ]
    # Deleted refs are removed first: a branch "a" may have made room for "a/b".
    for changes in filter(None, (stale, fresh)):
        copy.must(
            "update-ref", "--stdin", stdin="".join(changes),
            what=f"copy the branches and tags of {origin.source}",
        )  # fmt: skip


def _refs_of_origin(repository: Git) -> dict[str, str]:
    """Branches, tags and HEAD, by the names they have in a copy."""
    refs = _refs(repository)
    head = repository.call("rev-parse", "--verify", "--quiet", "HEAD")
    return {**refs, HEAD: head.stdout.strip()} if head.ok else refs


def _refs(repository: Git, *more: str) -> dict[str, str]:
    """Branches, tags and ``more``."""
    listed = repository.must(
        "for-each-ref", "--format=%(refname) %(objectname)", *BRANCHES_AND_TAGS, *more,
        what=f"list the branches and tags of {repository.folder}",
    )  # fmt: skip
    return dict(line.split(" ") for line in listed.splitlines())
