"""What a report shows of a commit: author, date, files, its page, releases that have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from pydantic import Field

from dsbuilds.history.backports import equivalents
from dsbuilds.history.release_names import ReleaseNames, SeriesRelease
from dsharness.model import Value
from dsharness.plain_text import plain
from dsharness.products import SourceFacts
from dsharness.products.product import SERVER

# How a remote is spelled, and how its host spells the page of a commit. Credentials stay out.
REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?|[^/@:]+@)(?P<host>[^/:]+)(?::\d+(?=/))?[:/]"
    r"(?P<path>.+?)(?:\.git)?/?"
)
PAGES = {r"github\.com": "commit", r"(.+\.)?gitlab\..+": "-/commit", r"pagure\.io": "c"}


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
    link: str | None = Field(default=None, description="its page upstream")
    equivalents: tuple[str, ...] = Field(default=(), description="commits with the same change")
    releases: tuple[SeriesRelease, ...] = Field(
        default=(), description="how it came into each series of releases"
    )

    @property
    def counting(self) -> tuple[str, ...]:
        """The files that the server is made of."""
        return self.files[: len(self.files) - self.unread]

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Equivalents that are in no series of releases."""
        told = {each.commit for each in self.releases}
        return tuple(each for each in self.equivalents if each not in told)


def story(names: ReleaseNames, commit: str) -> Suspect:
    """All that a repository tells of a commit."""
    repository, source = names.repository, names.source
    facts = repository.commit(commit)
    files = sorted(repository.files(commit), key=lambda path: _place(path, source))
    same = equivalents(repository, commit)
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
        equivalents=tuple(each for each in same if each != facts.hash),
        releases=names.releases((facts.hash, *(each for each in same if each != facts.hash))),
    )


def _place(path: str, source: SourceFacts) -> tuple[bool, float, str]:
    """What the server is made of comes first, and of that what runs most."""
    fits = (heat for pattern, heat in source.hot_paths.items() if fnmatchcase(path, pattern))
    return source.kind_of(path) != SERVER, -next(fits, source.other_paths), path


def link(remotes: tuple[str, ...], commit: str, pages: Mapping[str, str]) -> str | None:
    """The commit's page where its host is a known one; ``pages`` are the product's own hosts."""
    for remote in remotes:
        spelled = REMOTE.fullmatch(remote)
        for host, word in {**pages, **PAGES}.items() if spelled else ():
            if spelled and re.fullmatch(host, spelled["host"]):
                return f"https://{spelled['host']}/{spelled['path']}/{word}/{commit}"
    return None
