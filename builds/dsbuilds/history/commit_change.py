"""A commit's change on another tree: for repairs, and for what would be without a culprit."""

from __future__ import annotations

from dsbuilds.git import Git
from dsbuilds.history.repository import UNSHALLOW, Repository
from dsharness.errors import SourceError

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's hash of no file at all
TEMPORARY_AUTHOR = {
    "GIT_AUTHOR_NAME": "dsbisect", "GIT_AUTHOR_EMAIL": "", "GIT_AUTHOR_DATE": "@0 +0000",
    "GIT_COMMITTER_NAME": "dsbisect", "GIT_COMMITTER_EMAIL": "", "GIT_COMMITTER_DATE": "@0 +0000",
}  # fmt: skip
LONGEST_HUNK = 40


def picked(repository: Repository, commit: str, onto: str, *, reverse: bool = False) -> str:
    """The tree ``onto`` with what a commit changed against its first parent, or without it.

    Nothing is checked out. SourceError names the file and lines that stand in the way.
    """
    if commit in repository.border:
        raise SourceError(
            f"{repository.source} is a shallow clone that ends at {commit[:12]}: "
            "what it changed is not known",
            hint=UNSHALLOW,
        )
    git = repository.git
    parents = repository.commit(commit).parents
    before, after = _tree(git, parents[0]) if parents else EMPTY, _tree(git, commit)
    here = _tree(git, onto)
    if reverse:
        before, after = after, before
    # Three temporary commits, so that git merges as it would pick: from the change's own base.
    base = _commit(git, before)
    our_side, their_side = (_commit(git, tree, base) for tree in (here, after))
    done = git.call("-c", "merge.conflictStyle=merge", "merge-tree", "--write-tree", "-z",
                    our_side, their_side)  # fmt: skip
    merged, *output = done.stdout.split("\0")
    if done.status == 1 and merged:
        verb = "taken away from" if reverse else "applied to"
        raise SourceError(
            f"the change of {commit[:12]} cannot be {verb} {onto[:12]}: "
            f"{_conflicts(git, merged, output)}",
            hint="a commit in between changed the same lines",
        )
    if not done.ok:
        raise SourceError(
            f"the change of {commit[:12]} cannot be picked: git merge-tree: {done.stderr.strip()}",
            hint="git 2.38 or newer is needed",
        )
    return merged


def _tree(git: Git, name: str) -> str:
    return git.must(
        "rev-parse", "--verify", "--end-of-options", f"{name}^{{tree}}", what=f"read {name[:12]}"
    ).strip()


def _commit(git: Git, tree: str, *parents: str) -> str:
    above = [part for parent in parents for part in ("-p", parent)]
    return git.must(
        "commit-tree", *above, "-m", "picked", tree, what="keep a change", env=TEMPORARY_AUTHOR
    ).strip()


def _conflicts(git: Git, merged: str, output: list[str]) -> str:
    """Git's words on each conflict, and the lines of it where there are lines."""
    # (MODE HASH STAGE TAB PATH NUL)* NUL (COUNT NUL (PATH NUL)* KIND NUL MESSAGE NUL)*
    files = output[: output.index("")]
    paths = dict.fromkeys(entry.partition("\t")[2] for entry in files)
    messages = [text.strip() for text in output[len(files) :] if text.startswith("CONFLICT (")]
    conflicts = [text for text in messages if "):" in text] or [f"conflict in {', '.join(paths)}"]
    hunks = [_hunk(path, git.call("cat-file", "blob", f"{merged}:{path}").stdout) for path in paths]
    return "\n".join(["; ".join(conflicts), *filter(None, hunks)])


def _hunk(path: str, text: str) -> str:
    """The first lines that git could not merge."""
    lines = text.split("\n")
    begin = next((n for n, line in enumerate(lines) if line.startswith("<<<<<<< ")), None)
    if begin is None:
        return ""
    rest = lines[begin:]
    length = next((n for n, line in enumerate(rest) if line.startswith(">>>>>>> ")), len(rest))
    shown = rest[: min(length + 1, LONGEST_HUNK)]
    return "\n".join([f"{path}, line {begin + 1}:", *shown])
