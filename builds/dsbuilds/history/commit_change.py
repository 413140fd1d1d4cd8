"""A commit's change on another tree: for repairs, and for what would be without a culprit.

Only files that a build reads are changed, so that neither a test nor a page of a web UI is in the
way of it. Git merges; where it cannot, C and Rust files are merged item by item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsbuilds.git import Git
from dsbuilds.history.lines import differences
from dsbuilds.history.relevant_files import facts_of, readable
from dsbuilds.history.repository import UNSHALLOW, Repository
from dsbuilds.history.source_items import can_split, merged, title
from dsbuilds.sources.source_tree import EMPTY, Tree, kept_object, tree_with
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import SourceError
from dsharness.products.product import SERVER

TEMPORARY_AUTHOR = {
    "GIT_AUTHOR_NAME": "dsbisect",
    "GIT_AUTHOR_EMAIL": "",
    "GIT_AUTHOR_DATE": "@0 +0000",
    "GIT_COMMITTER_NAME": "dsbisect",
    "GIT_COMMITTER_EMAIL": "",
    "GIT_COMMITTER_DATE": "@0 +0000",
}
LONGEST_HUNK = 40
ALL_SIDES = {"1", "2", "3"}  # git's numbers of base, ours and theirs in a conflict


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """What two changes have in common: a file, and which of its items; none named: all of it."""

    path: str
    items: frozenset[str] = frozenset()


class OverlapError(SourceError):
    """Both sides changed the same lines."""

    overlaps: tuple[Overlap, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Picked:
    """A tree with a change, or without it; ``items`` names files that git alone did not merge."""

    tree: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Side:
    mode: str
    blob: str


def picked(repository: Repository, commit: str, onto: str, *, reverse: bool = False) -> Picked:
    """Return the tree ``onto`` with what a commit changed against its first parent, or without it.

    Nothing is checked out. OverlapError names the files and lines that stand in the way.
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
    onto_tree = _tree(git, onto)
    if reverse:
        before, after = after, before
    sides = _sides(git, before, after, onto_tree)
    # Three temporary commits, so that git merges as it would pick: from the change's own base.
    base = _commit(git, sides[0])
    our_side, their_side = (_commit(git, tree, base) for tree in sides[1:])
    result = git.call(
        "-c", "merge.conflictStyle=merge", "merge-tree", "--write-tree", "-z", our_side, their_side
    )
    tree, *output = result.stdout.split("\0")
    if result.ok:
        return Picked(tree=tree)
    if result.status != 1 or not tree:
        raise SourceError(
            f"the change of {commit[:12]} cannot be picked: git merge-tree: "
            f"{result.stderr.strip()}",
            hint="git 2.38 or newer is needed",
        )
    stages = _stages(output)
    files, overlaps = _by_items(git, stages)
    if not overlaps:
        names = tuple(path.rpartition("/")[2] for path in files)
        return Picked(tree=tree_with(git, tree, files), items=names)
    verb = "taken away from" if reverse else "applied to"
    error = OverlapError(
        f"the change of {commit[:12]} cannot be {verb} {onto[:12]}: "
        f"{_conflicts(git, tree, output, overlaps)}",
        hint="a commit in between changed the same lines",
    )
    error.overlaps = overlaps
    raise error


def _sides(git: Git, before: str, after: str, onto: str) -> tuple[str, str, str]:
    """Return base, ours and theirs: ``onto`` with only files replaced that a build reads.

    What decides the server is merged; any other file that is read follows the change where it is
    as before the change, and else stays what it is.
    """
    names = [Tree(git=git, id=tree, origin=tree[:12]) for tree in (onto, before, after)]
    listings = [tree.listing() for tree in names]
    facts = facts_of(listings[0].keys() | listings[2].keys())
    readable_files = [
        readable(facts, tree.read, listing) for tree, listing in zip(names, listings, strict=True)
    ]
    change, own_changes = differences(git, before, after), differences(git, onto, before)

    def counts(path: str) -> bool:
        return facts.kind_of(path) == SERVER

    followed = {
        path: step.after
        for path, step in change.items()
        if not counts(path)
        and path not in own_changes
        and any(reads(path) for reads in readable_files)
    }
    ours = tree_with(git, onto, followed)
    base = tree_with(
        git, ours, {path: step.after for path, step in own_changes.items() if counts(path)}
    )
    theirs = tree_with(
        git, base, {path: step.after for path, step in change.items() if counts(path)}
    )
    return base, ours, theirs


def _by_items(
    git: Git, stages: Mapping[str, Mapping[str, _Side]]
) -> tuple[dict[str, str | None], tuple[Overlap, ...]]:
    """Return files that git could not merge: merged item by item, or what overlaps in them."""
    files: dict[str, str | None] = {}
    overlaps = []
    for path, sides in stages.items():
        if not (can_split(path) and sides.keys() >= ALL_SIDES):
            overlaps.append(Overlap(path=path))
            continue
        base, ours, theirs = (
            git.must("cat-file", "blob", sides[side].blob, what=f"read {path}")
            for side in sorted(ALL_SIDES)
        )
        result = merged(path, base, ours, theirs, _lines_merged)
        if result.overlaps:
            overlaps.append(Overlap(path=path, items=frozenset(result.overlaps)))
        else:
            files[path] = f"{sides['2'].mode} {kept_object(git, 'blob', result.text)}"
    return files, tuple(overlaps)


def _lines_merged(base: str, ours: str, theirs: str) -> str | None:
    """Return an item that both sides changed, where they changed other lines of it."""
    with scratch_folder("merge") as folder:
        paths = [folder / name for name in ("ours", "base", "theirs")]
        for path, text in zip(paths, (ours, base, theirs), strict=True):
            path.write_bytes(text.encode(errors="surrogateescape"))
        result = Git(folder=folder).call("merge-file", "-p", *map(str, paths))
    return result.stdout if result.ok else None


def _tree(git: Git, name: str) -> str:
    return git.must(
        "rev-parse", "--verify", "--end-of-options", f"{name}^{{tree}}", what=f"read {name[:12]}"
    ).strip()


def _commit(git: Git, tree: str, *parents: str) -> str:
    above = [part for parent in parents for part in ("-p", parent)]
    return git.must(
        "commit-tree", *above, "-m", "picked", tree, what="keep a change", env=TEMPORARY_AUTHOR
    ).strip()


def _stages(output: list[str]) -> dict[str, dict[str, _Side]]:
    """Return each conflicting path's versions: base is 1, ours 2, theirs 3."""
    # (MODE HASH STAGE TAB PATH NUL)* NUL (COUNT NUL (PATH NUL)* KIND NUL MESSAGE NUL)*
    stages: dict[str, dict[str, _Side]] = {}
    for entry in output[: output.index("")]:
        facts, _, path = entry.partition("\t")
        mode, blob, stage = facts.split(" ")
        stages.setdefault(path, {})[stage] = _Side(mode=mode, blob=blob)
    return stages


def _conflicts(git: Git, tree: str, output: list[str], overlaps: tuple[Overlap, ...]) -> str:
    """Return git's words on each conflict that is left, and its lines where there are some."""
    messages = [text.strip() for text in output[output.index("") :] if text.startswith("CONFLICT")]
    paths = [overlap.path for overlap in overlaps]
    relevant = [text for text in messages if "):" in text and any(path in text for path in paths)]
    items = [
        f"{overlap.path}: {', '.join(map(title, sorted(overlap.items)))}"
        for overlap in overlaps
        if overlap.items
    ]
    hunks = [_hunk(path, git.call("cat-file", "blob", f"{tree}:{path}").stdout) for path in paths]
    first = "; ".join(relevant or [f"conflict in {', '.join(paths)}"])
    return "\n".join([first, *items, *filter(None, hunks)])


def _hunk(path: str, text: str) -> str:
    """Return the first lines that git could not merge."""
    lines = text.split("\n")
    begin = next((n for n, line in enumerate(lines) if line.startswith("<<<<<<< ")), None)
    if begin is None:
        return ""
    marked = lines[begin:]
    length = next((n for n, line in enumerate(marked) if line.startswith(">>>>>>> ")), len(marked))
    excerpt = marked[: min(length + 1, LONGEST_HUNK)]
    return "\n".join([f"{path}, line {begin + 1}:", *excerpt])
