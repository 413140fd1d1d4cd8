"""What a report shows of a commit: author, date, files, its page, releases that have it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field

from dsbuilds.history.backports import equivalents, releases
from dsbuilds.history.repository import Repository
from dsharness.model import Value
from dsharness.plain_text import plain
from dsharness.products import SourceFacts

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
    files: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    merge: bool = False
    link: str | None = Field(default=None, description="its page upstream")
    equivalents: tuple[str, ...] = Field(default=(), description="commits with the same change")
    releases: dict[str, str] = Field(default_factory=dict, description="branch -> first release")


def story(repository: Repository, commit: str, source: SourceFacts) -> Suspect:
    """All that a repository tells of a commit."""
    facts = repository.commit(commit)
    files = repository.files(commit)
    same = equivalents(repository, commit)
    return Suspect(
        hash=facts.hash,
        author=facts.author,
        date=facts.date,
        subject=facts.subject,
        files=tuple(plain(name) for name in files),
        kinds=source.kinds_of(files),
        merge=len(facts.parents) > 1,
        link=link(repository.remotes, facts.hash, source.commit_pages),
        equivalents=tuple(each for each in same if each != facts.hash),
        releases=releases(repository, same),
    )


def link(remotes: tuple[str, ...], commit: str, pages: Mapping[str, str]) -> str | None:
    """The commit's page where its host is a known one; ``pages`` are the product's own hosts."""
    for remote in remotes:
        spelled = REMOTE.fullmatch(remote)
        for host, word in {**pages, **PAGES}.items() if spelled else ():
            if spelled and re.fullmatch(host, spelled["host"]):
                return f"https://{spelled['host']}/{spelled['path']}/{word}/{commit}"
    return None
