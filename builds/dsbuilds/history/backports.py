"""Where else a change went: the same patch on other branches."""

from __future__ import annotations

import re

from dsbuilds.history.repository import Repository

PICKED = re.compile(r"cherry[- ]picked from(?: commit)?:? ([0-9a-f]{7,40})\b", re.IGNORECASE)
MOST_NAMED = 100_000  # characters of file names: what changes more is picked nowhere


def equivalents(repository: Repository, commit: str) -> tuple[str, ...]:
    """The commit and all that carry its change: by patch-id, or by what they say of themselves."""
    found, compared = {commit}, set[str]()
    while found != compared:  # a changed pick has another patch-id, and may be copied
        for each in found - compared:
            found |= _same_patch(repository, each)
            compared.add(each)
        found |= _picked_from(repository, found)
    return tuple(sorted(found))


def _same_patch(repository: Repository, commit: str) -> set[str]:
    """Commits of any branch whose change of the same files has the same patch-id."""
    files = repository.files(commit)
    parents = repository.commit(commit).parents
    if not files or commit in repository.border or _characters(files) > MOST_NAMED:
        return set()
    # Without --full-history git leaves out a branch whose merge changed nothing.
    candidates = repository.git.must(
        "rev-list", "--all", "--no-merges", "--full-history", "--", *files,
        what=f"look for backports of {commit[:12]}",
    )  # fmt: skip
    own = _patch_ids(repository, " ".join([commit, *parents[:1]]) + "\n", files).get(commit)
    others = _patch_ids(repository, candidates, files)
    return {other for other, patch in others.items() if patch == own}


def _characters(names: tuple[str, ...]) -> int:
    return sum(len(name.encode()) + 1 for name in names)


def _patch_ids(repository: Repository, commits: str, files: tuple[str, ...]) -> dict[str, str]:
    patches = repository.git.must(
        "diff-tree", "--stdin", "-p", "--root", "--full-index", "--no-renames", "--no-ext-diff",
        "--no-textconv", "--", *files, stdin=commits, what="read patches",
    )  # fmt: skip
    output = repository.git.must("patch-id", "--stable", stdin=patches, what="compare patches")
    pairs = (entry.split() for entry in output.splitlines())
    return {commit: patch for patch, commit in pairs}


def _picked_from(repository: Repository, known: set[str]) -> set[str]:
    """Commits picked from a known one or that a known one was picked from, and so on."""
    listed = repository.git.must(
        "rev-list", "--all", "-i", "--extended-regexp", "--grep=cherry[- ]picked from",
        "--format=%x00%H%x00%B%x00", what="read what was picked",
    )  # fmt: skip
    fields = listed.split("\0")
    sources = {
        digest: PICKED.findall(body)
        for digest, body in zip(fields[1::3], fields[2::3], strict=False)
    }
    found = set(known)
    while True:
        above = {origin for each in found for origin in sources.get(each, ())}
        below = {
            digest
            for digest, origins in sources.items()
            if any(each.startswith(origin) for origin in origins for each in found | above)
        }
        more = found | below | {_full(repository, origin) for origin in above}
        if more - {""} == found:
            return found
        found = more - {""}


def _full(repository: Repository, digest: str) -> str:
    """The commit's whole hash; nothing where it is of some other repository."""
    done = repository.git.call("rev-parse", "--verify", "--quiet", f"{digest}^{{commit}}")
    return done.stdout.strip() if done.ok else ""
