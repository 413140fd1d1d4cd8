"""What a report shows of a commit: author, date, files, its page, releases that have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, Field

from dsbuilds.history.release_names import ReleaseNames, SeriesRelease
from dsbuilds.history.repository import Repository
from dsharness.model import Value
from dsharness.plain_text import plain
from dsharness.products import SourceFacts
from dsharness.products.product import SERVER

PICKED = re.compile(r"cherry[- ]picked from(?: commit)?:? ([0-9a-f]{7,40})\b", re.IGNORECASE)
MOST_NAMED = 100_000  # characters of file names: what changes more is picked nowhere


def equivalents(repository: Repository, commit: str) -> tuple[str, ...]:
    """The commit and all that carry its change: by patch-id, or by what they say of themselves."""
    same, compared = {commit}, set[str]()
    while same != compared:  # a changed pick has another patch-id, and may be copied
        for copy in same - compared:
            same |= _same_patch(repository, copy)
            compared.add(copy)
        same |= _picked_from(repository, same)
    return tuple(sorted(same))


def _same_patch(repository: Repository, commit: str) -> set[str]:
    """Return commits of any branch whose change of the same files has the same patch-id."""
    files = repository.files(commit)
    parents = repository.commit(commit).parents
    if not files or commit in repository.border or _characters(files) > MOST_NAMED:
        return set()
    # Without --full-history git leaves out a branch whose merge changed nothing.
    command = ("rev-list", "--all", "--no-merges", "--full-history", "--", *files)
    candidates = repository.git.must(*command, what=f"look for backports of {commit[:12]}")
    own = _patch_ids(repository, " ".join([commit, *parents[:1]]) + "\n", files).get(commit)
    patch_ids = _patch_ids(repository, candidates, files)
    return {candidate for candidate, patch in patch_ids.items() if patch == own}


def _characters(names: tuple[str, ...]) -> int:
    return sum(len(name.encode()) + 1 for name in names)


def _patch_ids(repository: Repository, commits: str, files: tuple[str, ...]) -> dict[str, str]:
    patches = repository.git.must(
        "diff-tree",
        "--stdin",
        "-p",
        "--root",
        "--full-index",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--",
        *files,
        stdin=commits,
        what="read patches",
    )
    output = repository.git.must("patch-id", "--stable", stdin=patches, what="compare patches")
    pairs = (entry.split() for entry in output.splitlines())
    return {commit: patch for patch, commit in pairs}


def _picked_from(repository: Repository, commits: set[str]) -> set[str]:
    """Return commits picked from a known one or that a known one was picked from, and so on."""
    log = repository.git.must(
        "rev-list",
        "--all",
        "-i",
        "--extended-regexp",
        "--grep=cherry[- ]picked from",
        "--format=%x00%H%x00%B%x00",
        what="read what was picked",
    )
    fields = log.split("\0")
    sources = {
        digest: PICKED.findall(body)
        for digest, body in zip(fields[1::3], fields[2::3], strict=False)
    }
    family = set(commits)
    while True:
        above = {origin for member in family for origin in sources.get(member, ())}
        below = {
            digest
            for digest, origins in sources.items()
            if any(member.startswith(origin) for origin in origins for member in family | above)
        }
        larger = family | below | {_full(repository, origin) for origin in above}
        if larger - {""} == family:
            return family
        family = larger - {""}


def _full(repository: Repository, digest: str) -> str:
    """Return the commit's whole hash; nothing where it is of some other repository."""
    result = repository.git.call("rev-parse", "--verify", "--quiet", f"{digest}^{{commit}}")
    return result.stdout.strip() if result.ok else ""


# How a remote is spelled, and how its host spells the page of a commit. Credentials stay out.
REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?|[^/@:]+@)(?P<host>[^/:]+)(?::\d+(?=/))?[:/]"
    r"(?P<path>.+?)(?:\.git)?/?"
)
PAGES = {r"github\.com": "commit", r"(.+\.)?gitlab\..+": "-/commit", r"pagure\.io": "c"}


WEB_PAGE = re.compile(r"https?://[\w.:/@%+~?=&,;#!*-]+", re.ASCII)


def _page_or_none(link: str | None) -> str | None:
    """A report makes a link of it, so it is a page of the web or nothing."""
    return link if link is not None and WEB_PAGE.fullmatch(link) else None


PageLink = Annotated[str | None, AfterValidator(_page_or_none)]


class Suspect(Value):
    """A commit that may be the culprit, and all that is known of it."""

    hash: str
    author: str
    date: str
    subject: str
    files: tuple[str, ...] = Field(
        default=(), description="those that count for the server first, the hottest before others"
    )
    unread: int = Field(
        default=0, description="so many of them, the last, the server does not read"
    )
    kinds: tuple[str, ...] = ()
    merge: bool = False
    link: PageLink = Field(default=None, description="its page upstream")
    equivalents: tuple[str, ...] = Field(default=(), description="commits with the same change")
    releases: tuple[SeriesRelease, ...] = Field(
        default=(), description="how it came into each series of releases"
    )

    @property
    def counting(self) -> tuple[str, ...]:
        """The files that the server is made of."""
        return self.files[: len(self.files) - self.unread]

    @property
    def repository(self) -> str:
        """The address of the repository whose page its link is; empty where none is known."""
        page = re.compile(rf"/(?:-/)?[^/]+/{self.hash}$")
        return page.sub("", self.link) if self.link and page.search(self.link) else ""

    @property
    def day(self) -> str:
        """When it was made: ``2022-11-18``."""
        return self.date.partition("T")[0]

    @property
    def release(self) -> str:
        """The first release with it in its own series, or the branch that has none yet."""
        own = [release for release in self.releases if release.commit == self.hash]
        return next((release.first or release.series for release in own), "")

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Equivalents that are in no series of releases."""
        released = {release.commit for release in self.releases}
        return tuple(equivalent for equivalent in self.equivalents if equivalent not in released)


def story(names: ReleaseNames, commit: str) -> Suspect:
    """Return all that a repository tells of a commit."""
    repository, source = names.repository, names.source
    facts = repository.commit(commit)
    files = sorted(repository.files(commit), key=lambda path: _place(path, source))
    copies = equivalents(repository, commit)
    return Suspect(
        hash=facts.hash,
        author=facts.author,
        date=facts.date,
        subject=facts.subject,
        files=tuple(plain(name) for name in files),
        unread=sum(source.kind_of(path) != SERVER for path in files),
        kinds=source.kinds_of(files),
        merge=len(facts.parents) > 1,
        link=link(repository.remotes, facts.hash, source.commit_pages),
        equivalents=tuple(copy for copy in copies if copy != facts.hash),
        releases=names.releases((facts.hash, *(copy for copy in copies if copy != facts.hash))),
    )


def _place(path: str, source: SourceFacts) -> tuple[bool, float, str]:
    """Return what the server is made of comes first, and of that what runs most."""
    fits = (heat for pattern, heat in source.hot_paths.items() if fnmatchcase(path, pattern))
    return source.kind_of(path) != SERVER, -next(fits, source.other_paths), path


def commit_page(repository: Repository, source: SourceFacts) -> str:
    """Return what a commit's hash makes its page of, where the repository's host is a known one."""
    return link(repository.remotes, "", source.commit_pages) or ""


def link(remotes: tuple[str, ...], commit: str, pages: Mapping[str, str]) -> str | None:
    """The commit's page where its host is a known one; ``pages`` are the product's own hosts."""
    for remote in remotes:
        spelled = REMOTE.fullmatch(remote)
        for host, word in {**pages, **PAGES}.items() if spelled else ():
            if spelled and re.fullmatch(host, spelled["host"]):
                return f"https://{spelled['host']}/{spelled['path']}/{word}/{commit}"
    return None
