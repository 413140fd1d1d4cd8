"""The lab's own copy of a repository: fetched from a URL, or borrowing a local one's objects.

A local repository is read and nothing else: no command that could write runs in it, and nothing
that it configures is asked for. Its refs are copied, its objects are found where they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dsbuilds.git import Git, git
from dsbuilds.history.revision import Revision, resolved
from dsbuilds.sources.source_tree import own_repository
from dsharness.containers.engine import last_line
from dsharness.content_key import content_key
from dsharness.errors import SourceError
from dsharness.paths import cache_home
from dsharness.plain_text import plain, without_credentials
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline
from dsharness.products import product_of_source, why_no_source
from dsimages.file_lock import exclusive

HEAD = "refs/dsbisect/HEAD"  # what the user had checked out
BRANCHES_AND_TAGS = ("refs/heads", "refs/tags", "refs/remotes")
# What old histories have, and harms nobody.
HARMLESS = (
    "zeroPaddedFilemode",
    "badTimezone",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
)
FSCK = (
    "-c",
    "fetch.fsckObjects=true",
    *(part for name in HARMLESS for part in ("-c", f"fetch.fsck.{name}=ignore")),
)
TRANSPORTS = ("https", "http", "ssh", "git", "file")
TRANSPORTS_TOLD = f"{', '.join(TRANSPORTS)}, user@host:path, or a folder"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a repository is: a URL, or the folders of a local one."""

    source: str
    folder: Path | None = None
    objects: Path | None = None
    shallow: Path | None = None
    below: str = ""  # where in it the refs are that count, such as refs/dsbisect/NAME/

    @property
    def key(self) -> str:
        place = str(self.folder or self.source)
        return content_key([place, self.below] if self.below else place)

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
    """Return what a user's word for a repository means."""
    path = Path(source).expanduser()
    if not path.exists():
        return _remote(source)
    result = git(
        "-C",
        str(path if path.is_dir() else path.parent),
        "rev-parse",
        "--path-format=absolute",
        "--absolute-git-dir",
        "--git-path",
        "objects",
        "--git-path",
        "shallow",
    )
    places = [Path(line).resolve() for line in result.stdout.splitlines()]
    if not path.is_dir() or not result.ok or len(places) != 3:
        raise SourceError(
            f"{source} is not a git repository", hint="name a checkout, a bare repository or a URL"
        )
    return Origin(source=source, folder=places[0], objects=places[1], shallow=places[2])


def bring_up_to_date(copy: Git, origin: Origin, limit: Deadline) -> None:
    """Let the copy know all that its origin knows now."""
    if origin.folder is None or origin.below:
        _fetch(copy, origin, limit)
    else:
        _borrow(copy, origin, origin.folder)
    if (copy.folder / "HEAD").read_text(encoding="utf-8") != f"ref: {HEAD}\n":
        copy.must("symbolic-ref", "HEAD", HEAD, what=f"note what {origin.source} has checked out")


def refused_transport(source: str) -> str:
    """How a repository would be fetched, where it never is; a helper runs what its URL says."""
    match = re.match(r"([A-Za-z0-9][A-Za-z0-9+.-]*)(://|::)", source)
    return "" if match is None or match[0] in {f"{name}://" for name in TRANSPORTS} else match[0]


def _remote(source: str) -> Origin:
    scheme = "://" in source
    like_scp = re.match(r"[^/:\s-][^/:\s]*:(?!:)\S", source)
    if refused := refused_transport(source):
        raise SourceError(
            f"{source}: no repository is fetched by {refused}",
            hint=f"what works: {TRANSPORTS_TOLD}",
        )
    if not scheme and like_scp is None:
        raise SourceError(
            f"{source} does not exist", hint="name a checkout, a bare repository or a URL"
        )
    return Origin(source=source)


def _fetch(copy: Git, origin: Origin, limit: Deadline) -> None:
    source, prefix = str(origin.folder or origin.source), origin.below
    everything = [f"+{prefix}{place}/*:{place}/*" for place in BRANCHES_AND_TAGS]
    checks = FSCK if prefix else ()  # others may write there, too
    # A shallow origin that was completed must be seen here, too.
    whole = ["--unshallow"] if (copy.folder / "shallow").exists() else []
    for head in ([f"+{prefix}HEAD:{HEAD}"], []):  # the origin's HEAD may lead nowhere
        result = copy.call(
            *checks,
            "fetch",
            "--quiet",
            "--no-auto-maintenance",
            "--prune",
            "--force",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--update-shallow",
            *whole,
            "--",
            source,
            *head,
            *everything,
            limit_s=limit.left_s,
            users=True,
        )
        if result.ok or "remote ref HEAD" not in result.stderr:
            break
    if not result.ok:
        raise SourceError(
            f"{source} cannot be fetched: {last_line(result)}",
            hint="check the address, the network and who may read it",
        )
    if not head:
        copy.must("update-ref", "-d", HEAD, what=f"forget what {source} had checked out")


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
    origin_refs, own_refs = _refs_of_origin(Git(folder=folder)), _refs(copy, HEAD)
    stale = [f"delete {name}\n" for name in own_refs if name not in origin_refs]
    fresh = [
        f"update {name} {value}\n"
        for name, value in origin_refs.items()
        if own_refs.get(name) != value
    ]
    # Deleted refs are removed first: a branch "a" may have made room for "a/b".
    for changes in filter(None, (stale, fresh)):
        copy.must(
            "update-ref",
            "--stdin",
            stdin="".join(changes),
            what=f"copy the branches and tags of {origin.source}",
        )


def _refs_of_origin(repository: Git) -> dict[str, str]:
    """Return branches, tags and HEAD, by the names they have in a copy."""
    refs = _refs(repository)
    head = repository.call("rev-parse", "--verify", "--quiet", "HEAD")
    return {**refs, HEAD: head.stdout.strip()} if head.ok else refs


def _refs(repository: Git, *more: str) -> dict[str, str]:
    """Return branches, tags and ``more``."""
    task = f"list the branches and tags of {repository.folder}"
    rows = repository.refs(*BRANCHES_AND_TAGS, *more, fields=("refname", "objectname"), what=task)
    return dict(rows)


# The text of a commit can contain anything except a NUL.
FETCH_LIMIT_S = 3600.0
UNSHALLOW = "fetch the rest of its history: git fetch --unshallow --tags"
FIELDS = ("%H", "%T", "%P", "%an <%ae>", "%aI", "%s")
FORMAT = "".join(f"{field}%x00" for field in FIELDS)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """Who changed what, when, on top of what."""

    hash: str
    tree: str
    parents: tuple[str, ...]
    author: str
    date: str
    subject: str


def read_commits(git: Git, arguments: tuple[str, ...], *, what: str) -> tuple[Commit, ...]:
    """Return what `git rev-list` lists for these arguments, in its order."""
    output = git.must("rev-list", "--encoding=UTF-8", f"--format={FORMAT}", *arguments, what=what)
    fields = output.split("\0")[:-1]
    size = len(FIELDS)
    return tuple(_commit(fields[start : start + size]) for start in range(0, len(fields), size))


def _commit(fields: list[str]) -> Commit:
    header, tree, parents, author, date, subject = fields
    return Commit(
        hash=header.rpartition("\n")[2],  # git's own "commit HASH" line comes before it
        tree=tree,
        parents=tuple(parents.split()),
        author=plain(author),
        date=plain(date),
        subject=plain(subject),
    )


@dataclass(frozen=True, kw_only=True)
class Repository:
    """The lab's own bare copy; ``source`` is what the user named, without credentials."""

    source: str
    git: Git
    remotes: tuple[str, ...] = ()
    users: Git | None = None  # a local one, asked for nothing but what a revision's name means

    @classmethod
    def open(cls, source: str, *, below: str = "", deadline: Deadline | None = None) -> Repository:
        """Bring the lab's copy up to date with a URL or a path, or with the refs below a name."""
        limit = deadline or Deadline.after(FETCH_LIMIT_S)
        origin = replace(origin_of(source), below=below)
        copy = own_repository(origin.key)
        lock = cache_home() / "locks" / f"repository-{origin.key}.lock"
        with exclusive(lock, limit):
            bring_up_to_date(copy, origin, limit)
        return cls(
            source=without_credentials(source),
            git=copy,
            remotes=origin.remotes,
            users=None if origin.folder is None or below else Git(folder=origin.folder),
        )

    def publish(self, target: str, prefix: str, revisions: Mapping[str, str]) -> None:
        """Push commits, under the names of branches and tags, to below that name elsewhere."""
        result = self.git.call(
            "push",
            "--quiet",
            "--no-verify",
            "--force",
            "--",
            target,
            *(f"{commit}:{prefix}{ref}" for ref, commit in revisions.items()),
            limit_s=FETCH_LIMIT_S,
            users=True,
        )
        if not result.ok:
            raise SourceError(
                f"{target} does not take the commits: {last_line(result)}",
                hint="name a bare repository that you may push to: git init --bare PATH",
            )

    def revision(self, name: str) -> str:
        """Return the full hash of what a user calls a revision."""
        return self.named(name).hash

    def named(self, name: str) -> Revision:
        """Return the same, with what an inexact name was taken for."""
        hint = UNSHALLOW if self.shallow else ""
        return resolved(self.git, name, source=self.source, hint=hint, users=self.users)

    def commit(self, revision: str) -> Commit:
        return self.commits("--no-walk=unsorted", revision)[0]

    def commits(self, *arguments: str) -> tuple[Commit, ...]:
        """Return what `git rev-list` lists for these arguments."""
        return read_commits(self.git, arguments, what=f"read the history of {self.source}")

    def chain(self, tip: str, *, without: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tip and its first parents, oldest first, but for what ``without`` reaches."""
        excluded = (f"^{commit}" for commit in without)
        command = ("rev-list", "--first-parent", "--reverse", tip, *excluded)
        output = self.git.must(*command, what=f"list the commits before {tip[:12]}")
        return tuple(output.split())

    def files(self, revision: str) -> tuple[str, ...]:
        """Return what a commit changes against its first parent."""
        output = self.git.must(
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-commit-id",
            "--root",
            "-m",
            "--first-parent",
            revision,
            what=f"read the changes of {revision[:12]}",
        )
        return tuple(name for name in output.split("\0") if name)

    def is_ancestor(self, commit: str, of: str) -> bool:
        return self.git.call("merge-base", "--is-ancestor", commit, of).ok

    def product(self, revision: str) -> str:
        """Return the id of the product whose source this is; SourceError when it is of none."""

        def has(path: str) -> bool:
            return self.git.call("cat-file", "-e", f"{revision}:{path}").ok

        product_id = product_of_source(has)
        if product_id is None:
            raise SourceError(
                f"{self.source} at {revision[:12]} is {why_no_source(has)}",
                hint="clone the product's own repository, or name its URL",
            )
        return product_id

    @property
    def name(self) -> str:
        """The last part of where it is, without .git."""
        return self.source.rstrip("/").removesuffix(".git").rpartition("/")[2] or "repository"

    @property
    def shallow(self) -> bool:
        return bool(self.border)

    @property
    def border(self) -> frozenset[str]:
        """Commits of a shallow clone whose parents are not there."""
        try:
            listed = (self.git.folder / "shallow").read_text(encoding="ascii")
        except FileNotFoundError:
            return frozenset()
        return frozenset(listed.split())
