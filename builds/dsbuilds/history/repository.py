"""A repository as the lab sees it: its own copy, so that the user's is only read."""

from __future__ import annotations

from dataclasses import dataclass

from dsbuilds.git import Git
from dsbuilds.history.clone import bring_up_to_date, origin_of
from dsbuilds.history.revision import Revision, resolved
from dsbuilds.sources.source_tree import own_repository
from dsharness.errors import SourceError
from dsharness.paths import cache_home
from dsharness.plain_text import plain, without_credentials
from dsharness.process.deadline import Deadline
from dsharness.products import product_of_source, why_no_source
from dsimages.file_lock import exclusive

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
    """What `git rev-list` lists for these arguments, in its order."""
    listed = git.must("rev-list", "--encoding=UTF-8", f"--format={FORMAT}", *arguments, what=what)
    fields = listed.split("\0")[:-1]
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
    def open(cls, source: str, *, deadline: Deadline | None = None) -> Repository:
        """Bring the lab's copy up to date with a URL or a path."""
        limit = deadline or Deadline.after(FETCH_LIMIT_S)
        origin = origin_of(source)
        copy = own_repository(origin.key)
        lock = cache_home() / "locks" / f"repository-{origin.key}.lock"
        with exclusive(lock, limit):
            bring_up_to_date(copy, origin, limit)
        return cls(
            source=without_credentials(source),
            git=copy,
            remotes=origin.remotes,
            users=None if origin.folder is None else Git(folder=origin.folder),
        )

    def revision(self, name: str) -> str:
        """The full hash of what a user calls a revision."""
        return self.named(name).hash

    def named(self, name: str) -> Revision:
        """The same, with what an inexact name was taken for."""
        hint = UNSHALLOW if self.shallow else ""
        return resolved(self.git, name, source=self.source, hint=hint, users=self.users)

    def commit(self, revision: str) -> Commit:
        return self.commits("--no-walk=unsorted", revision)[0]

    def commits(self, *arguments: str) -> tuple[Commit, ...]:
        """What `git rev-list` lists for these arguments."""
        return read_commits(self.git, arguments, what=f"read the history of {self.source}")

    def chain(self, tip: str, *, without: tuple[str, ...]) -> tuple[str, ...]:
        """The tip and its first parents, oldest first, but for what ``without`` reaches."""
        excluded = (f"^{each}" for each in without)
        listed = self.git.must(
            "rev-list", "--first-parent", "--reverse", tip, *excluded,
            what=f"list the commits before {tip[:12]}",
        )  # fmt: skip
        return tuple(listed.split())

    def files(self, revision: str) -> tuple[str, ...]:
        """What a commit changes against its first parent."""
        done = self.git.must(
            "diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "--root", "-m",
            "--first-parent", revision, what=f"read the changes of {revision[:12]}",
        )  # fmt: skip
        return tuple(name for name in done.split("\0") if name)

    def is_ancestor(self, one: str, of: str) -> bool:
        return self.git.call("merge-base", "--is-ancestor", one, of).ok

    def product(self, revision: str) -> str:
        """The id of the product whose source this is; SourceError when it is of none."""

        def has(path: str) -> bool:
            return self.git.call("cat-file", "-e", f"{revision}:{path}").ok

        found = product_of_source(has)
        if found is None:
            raise SourceError(
                f"{self.source} at {revision[:12]} is {why_no_source(has)}",
                hint="clone the product's own repository, or name its URL",
            )
        return found

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
