"""A commit's change on another tree: for repairs, and for what would be without a culprit."""

from __future__ import annotations

from dsbuilds.history.repository import Repository
from dsbuilds.trees import temporary_index
from dsharness.errors import SourceError

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's hash of no file at all


def picked(repository: Repository, commit: str, onto: str, *, reverse: bool = False) -> str:
    """The tree ``onto`` with what a commit changed against its first parent, or without it.

    Nothing is checked out. SourceError names the file that stands in the way.
    """
    git = repository.git
    parents = repository.commit(commit).parents
    change = git.must(
        "diff-tree", "-p", "--binary", "--full-index", "--no-renames",
        parents[0] if parents else EMPTY, commit, what=f"read the change of {commit[:12]}",
    )  # fmt: skip
    if not change:
        return git.must("rev-parse", f"{onto}^{{tree}}", what=f"read {onto}").strip()
    with temporary_index() as env:
        git.must("read-tree", onto, what=f"read {onto}", env=env)
        flags = ["--reverse"] if reverse else []
        done = git.call(
            "apply", "--cached", "--3way", "--whitespace=nowarn", *flags, "-",
            stdin=change, env=env,
        )  # fmt: skip
        if not done.ok:
            lines = [line for line in done.stderr.splitlines() if "error" in line or "U " in line]
            raise SourceError(
                f"the change of {commit[:12]} does not fit {onto[:12]}: "
                f"{'; '.join(lines) or done.stderr.strip()}",
                hint="a commit in between changed the same lines",
            )
        return git.must("write-tree", what="keep the changed tree", env=env).strip()
