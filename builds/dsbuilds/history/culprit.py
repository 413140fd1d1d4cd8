"""All that is told of a commit: who, when, what, its page upstream, the releases that have it."""

from __future__ import annotations

import re
from typing import Any

from dsbuilds.history.backports import equivalents, releases
from dsbuilds.history.relevant_files import kinds_of
from dsbuilds.history.repository import Repository
from dsharness.plain_text import plain

# How a remote is spelled, and how its host spells the page of a commit. Credentials stay out.
REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?|[^/@:]+@)(?P<host>[^/:]+)(?::\d+(?=/))?[:/]"
    r"(?P<path>.+?)(?:\.git)?/?"
)
PAGES = (
    (re.compile(r"github\.com"), "commit"),
    (re.compile(r"(.+\.)?gitlab\..+"), "-/commit"),
    (re.compile(r"pagure\.io"), "c"),
)


def story(repository: Repository, commit: str) -> dict[str, Any]:
    """Everything about a commit, ready for JSON."""
    facts = repository.commit(commit)
    files = repository.files(commit)
    same = equivalents(repository, commit)
    return {
        "hash": facts.hash,
        "author": facts.author,
        "date": facts.date,
        "subject": facts.subject,
        "files": [plain(name) for name in files],
        "kinds": list(kinds_of(files)),
        "merge": len(facts.parents) > 1,
        "link": link(repository.remotes, facts.hash),
        "equivalents": [each for each in same if each != facts.hash],
        "releases": releases(repository, same),
    }


def link(remotes: tuple[str, ...], commit: str) -> str | None:
    """The commit's page where its host is a known one."""
    for remote in remotes:
        spelled = REMOTE.fullmatch(remote)
        for pattern, word in PAGES if spelled else ():
            if spelled and pattern.fullmatch(spelled["host"]):
                return f"https://{spelled['host']}/{spelled['path']}/{word}/{commit}"
    return None
