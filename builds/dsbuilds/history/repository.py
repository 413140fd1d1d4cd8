"""A repository as the lab sees it: a copy of its own, so that the user's is only ever read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.git import Git, git
from dsharness.commands import writing
from dsharness.content import content_key
from dsharness.engine import last_line
from dsharness.errors import SourceError
from dsharness.paths import cache_home
from dsharness.waiting import Deadline
from dsimages.exclusive import exclusive

FETCH_LIMIT_S = 3600.0
EVERYTHING = (
    "+refs/heads/*:refs/heads/*",
    "+refs/tags/*:refs/tags/*",
    "+refs/remotes/*:refs/remotes/*",
)
FIELDS = ("%H", "%T", "%P", "%an <%ae>", "%aI", "%s")
SERVER_FILES = ("configure.ac", "ldap/servers/slapd/main.c")


@dataclass(frozen=True, kw_only=True)
class Commit:
    hash: str
    tree: str
    parents: tuple[str, ...]
    author: str
    date: str
    subject: str


@dataclass(frozen=True, kw_only=True)
class Repository:
    """The lab's own bare copy; ``source`` is what the user named."""

    source: str
    git: Git
    remotes: tuple[str, ...] = ()

    @classmethod
    def open(cls, source: str, *, deadline: Deadline | None = None) -> Repository:
        """Bring the lab's copy up to date with a URL or a path."""
        limit = deadline or Deadline.after(FETCH_LIMIT_S)
        local = _local(source)
        origin = str(local) if local else source
        folder = cache_home() / "repositories" / f"{content_key(origin)}.git"
        lock = cache_home() / "locks" / f"repository-{content_key(origin)}.lock"
        copy = Git(folder=folder)
        with exclusive(lock, limit):
            if not (folder / "HEAD").exists():
                with writing(folder):
                    folder.mkdir(parents=True, exist_ok=True)
                copy.must("init", "--bare", "--quiet", what=f"make a copy of {source}")
            _fetch(copy, source, local, limit)
        return cls(source=source, git=copy, remotes=_remotes(source, local))

    def revision(self, name: str) -> str:
        """The full hash of what a user calls a revision."""
        for spelled in (name, f"refs/remotes/origin/{name}"):
            done = self.git.call(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{spelled}^{{commit}}"
            )
            if done.ok:
                return done.stdout.strip()
        if "ambiguous" in self.git.call("rev-parse", f"{name}^{{commit}}").stderr:
            raise SourceError(
                f"{self.source}: {name!r} fits several commits", hint="give more of the hash"
            )
        if self.shallow:
            raise SourceError(
                f"{self.source} has no revision {name!r}, and it is a shallow clone",
                hint="fetch the rest of its history: git fetch --unshallow --tags",
            )
        near = difflib.get_close_matches(name, self.names(), n=3)
        raise SourceError(
            f"{self.source} has no revision {name!r}",
            hint=f"perhaps you meant {' or '.join(near)}"
            if near
            else "`git log` shows those it has",
        )

    def names(self) -> list[str]:
        """Branches and tags."""
        refs = self.git.must(
            "for-each-ref", "--format=%(refname:short)", what=f"list the names in {self.source}"
        )
        return [name.removeprefix("origin/") for name in refs.splitlines()]

    def commit(self, revision: str) -> Commit:
        return self.commits(["--no-walk=unsorted", revision])[0]

    def commits(self, arguments: Iterable[str]) -> list[Commit]:
        """What `git log` lists for these arguments."""
        listed = self.git.must(
            "log", "-z", f"--format={'%x01'.join(FIELDS)}", *arguments,
            what=f"read the history of {self.source}",
        )  # fmt: skip
        return [_commit(entry) for entry in listed.split("\0") if entry.strip()]

    def files(self, revision: str) -> tuple[str, ...]:
        """What a commit changes against its first parent."""
        done = self.git.must(
            "diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "--root", "-m",
            "--first-parent", revision, what=f"read the changes of {revision}",
        )  # fmt: skip
        return tuple(name for name in done.split("\0") if name)

    def is_ancestor(self, one: str, of: str) -> bool:
        return self.git.call("merge-base", "--is-ancestor", one, of).ok

    def check_server(self, revision: str) -> None:
        """Refuse what is not 389-ds."""
        for path in SERVER_FILES:
            if not self.git.call("cat-file", "-e", f"{revision}:{path}").ok:
                raise SourceError(
                    f"{self.source} is no repository of 389-ds: {revision[:12]} has no {path}",
                    hint="clone 389-ds-base, or name its URL",
                )

    @property
    def name(self) -> str:
        """The last part of where it is, without .git."""
        return self.source.rstrip("/").removesuffix(".git").rpartition("/")[2] or "repository"

    @property
    def shallow(self) -> bool:
        return (self.git.folder / "shallow").exists()


def _local(source: str) -> Path | None:
    if "://" in source or (":" in source and not Path(source).exists()):
        return None
    path = Path(source).expanduser().resolve()
    done = git("-C", str(path), "rev-parse", "--absolute-git-dir") if path.is_dir() else None
    if done is None or not done.ok:
        raise SourceError(
            f"{source} is no git repository",
            hint="name a checkout, a bare repository or a URL",
        )
    return path


def _fetch(copy: Git, source: str, local: Path | None, limit: Deadline) -> None:
    origin = str(local) if local else source
    head = "+HEAD:refs/dsbisect/HEAD"
    done = copy.call(
        "fetch", "--quiet", "--no-auto-maintenance", "--prune", "--force", "--no-tags",
        "--update-shallow", origin, head, *EVERYTHING, limit_s=limit.left_s,
    )  # fmt: skip
    if not done.ok:
        raise SourceError(
            f"{source} cannot be fetched: {last_line(done)}",
            hint="check the address, the network and who may read it",
        )
    copy.call("symbolic-ref", "HEAD", "refs/dsbisect/HEAD")


def _remotes(source: str, local: Path | None) -> tuple[str, ...]:
    if local is None:
        return (source,)
    listed = git("-C", str(local), "config", "--get-regexp", r"^remote\..*\.url$").stdout
    return tuple(line.partition(" ")[2] for line in listed.splitlines())


def _commit(entry: str) -> Commit:
    digest, tree, parents, author, date, subject = entry.strip("\n").split("\x01", 5)
    return Commit(
        hash=digest,
        tree=tree,
        parents=tuple(parents.split()),
        author=author,
        date=date,
        subject=subject,
    )
