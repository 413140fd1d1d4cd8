"""All that is told of a commit: who, when, what, its page upstream, the releases that have it."""

from __future__ import annotations

import re
from typing import Any

from dsbuilds.history.backports import equivalents, releases
from dsbuilds.history.repository import Repository
from dsbuilds.relevance import kinds_of

# How the hosts of source code spell the page of a commit.
PAGES = (
    (re.compile(r"(?:https?://|git@|ssh://git@)(github\.com)[:/](.+?)(?:\.git)?/?$"), "commit"),
    (
        re.compile(r"(?:https?://|git@|ssh://git@)(gitlab\.[\w.]+)[:/](.+?)(?:\.git)?/?$"),
        "-/commit",
    ),
    (re.compile(r"(?:https?://|ssh://git@)(pagure\.io)/(.+?)(?:\.git)?/?$"), "c"),
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
        "files": list(files),
        "kinds": list(kinds_of(files)),
        "merge": len(facts.parents) > 1,
        "link": link(repository.remotes, facts.hash),
        "equivalents": [each for each in same if each != facts.hash],
        "releases": releases(repository, same),
    }


def link(remotes: tuple[str, ...], commit: str) -> str | None:
    """The commit's page where its host is a known one."""
    for remote in remotes:
        for pattern, word in PAGES:
            found = pattern.match(remote)
            if found is not None:
                return f"https://{found[1]}/{found[2]}/{word}/{commit}"
    return None
