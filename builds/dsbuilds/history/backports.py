"""Where else a change went: the same patch on other branches, and the first release of each."""

from __future__ import annotations

import re

from dsbuilds.history.repository import Repository

PICKED = re.compile(r"cherry[- ]picked from commit ([0-9a-f]{7,40})", re.IGNORECASE)


def equivalents(repository: Repository, commit: str) -> tuple[str, ...]:
    """The commit and all that carry its change: by patch-id, or by what they say of themselves."""
    files = repository.files(commit)
    listed = repository.git.must(
        "log", "--all", "--no-merges", "-p", "--full-index", "--no-color", "--no-ext-diff",
        "--format=commit %H", "--", *files, what=f"look for backports of {commit[:12]}",
    )  # fmt: skip
    ids = _patch_ids(repository, listed)
    own = _patch_ids(repository, _patch(repository, commit, files)).get(commit)
    found = {other for other, patch in ids.items() if own is not None and patch == own} | {commit}
    return tuple(sorted(found | _said(repository, found)))


def releases(repository: Repository, commits: tuple[str, ...]) -> dict[str, str]:
    """Branch -> its first tag that contains one of the commits: a frontier, not a point."""
    frontier = {}
    for branch in _branches(repository):
        tags = repository.git.call(
            "tag", "--merged", branch, "--sort=version:refname",
            *(part for commit in commits for part in ("--contains", commit)),
        )  # fmt: skip
        names = tags.stdout.split()
        if names:
            frontier[_plain(branch)] = names[0]
    return frontier


def _patch(repository: Repository, commit: str, files: tuple[str, ...]) -> str:
    return repository.git.must(
        "log", "-1", "-p", "--full-index", "--no-color", "--no-ext-diff", "-m", "--first-parent",
        "--format=commit %H", commit, "--", *files, what=f"read the change of {commit[:12]}",
    )  # fmt: skip


def _patch_ids(repository: Repository, patches: str) -> dict[str, str]:
    said = repository.git.must("patch-id", "--stable", stdin=patches, what="compare patches")
    pairs = (line.split() for line in said.splitlines())
    return {commit: patch for patch, commit in pairs}


def _said(repository: Repository, known: set[str]) -> set[str]:
    """Commits whose message says that they were picked from a known one, and from those."""
    listed = repository.git.must(
        "log", "--all", "-i", "--extended-regexp", "--grep=cherry[- ]picked from commit",
        "-z", "--format=%H%x01%B", what="read what was picked",
    )  # fmt: skip
    sources = {}
    for entry in listed.split("\0"):
        digest, _, body = entry.strip("\n").partition("\x01")
        sources[digest] = PICKED.findall(body)
    found: set[str] = set()
    while True:
        wanted = known | found
        more = {
            digest
            for digest, origins in sources.items()
            if digest not in wanted
            and any(each.startswith(origin) for origin in origins for each in wanted)
        }
        if not more:
            return found
        found |= more


def _branches(repository: Repository) -> list[str]:
    refs = repository.git.must(
        "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes",
        what=f"list the branches of {repository.source}",
    )  # fmt: skip
    return [ref for ref in refs.split() if not ref.endswith("/HEAD")]


def _plain(branch: str) -> str:
    return branch.removeprefix("refs/heads/").removeprefix("refs/remotes/")
