"""What a user asks of a repository, and what there is to search."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dsbisect.commits.commit_candidates import Patches, Repair
from dsbuilds.build_request import check_changes
from dsbuilds.edits.edit import Patch
from dsbuilds.edits.patch_file import patch_of, user_patches
from dsbuilds.history.commit_change import picked
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_choice import choices_of, for_databases, for_range, named
from dsharness.content_key import content_key
from dsharness.errors import AlreadySoError, BuildError, UsageError
from dsharness.model import DATABASE, DECIDER, AppliedPatch, Matrix, Settings, Toolchain, Workload
from dsharness.products import source_system
from dslab.lab_conditions import default_workloads
from dssearch.question import Question

SHORT = 12
MOST_SCATTER_PCT = 1000


@dataclass(frozen=True, kw_only=True)
class CommitsAsked:
    """What is asked of a repository, as it travels to other machines."""

    workload: Workload
    settings: Settings
    repository: str
    good: str
    bad: str
    metric: str = DECIDER
    first_parent: bool = False
    paths: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    toolchain: str | None = None
    clean: bool = False  # build each from nothing
    proof: bool = True
    scatter_pct: float | None = None  # by how much builds of one source differ, if it was measured
    backports: bool = False  # also measure cherry-picks of a culprit on other branches
    prior: Mapping[str, float] = field(default_factory=dict)  # the user's own
    flat: bool = False  # every commit equally likely
    keep: bool = False
    profile: bool = False  # of both sides of what is found


@dataclass(frozen=True, kw_only=True)
class CommitsRequest(CommitsAsked):
    """A search over commits on this machine."""

    matrix: Matrix
    patches: tuple[Path, ...] = ()

    def question(self, series_id: str, line: tuple[str, ...]) -> Question:
        """What is asked of these candidates."""
        return Question(
            series_id=series_id,
            line=line,
            workload_id=self.workload.id,
            settings_id=self.settings.id,
            metric=self.metric,
        )


def check_ask(ask: CommitsRequest) -> None:
    """Refuse what is clearly wrong before the repository is opened or fetched."""
    check_changes(ask.edits, ask.patches)
    if ask.scatter_pct is not None and not 0 <= ask.scatter_pct < MOST_SCATTER_PCT:
        raise UsageError(
            f"--scatter {ask.scatter_pct:g}: must be 0 or more, and below {MOST_SCATTER_PCT}",
            hint="in per cent: 2",
        )
    if ask.toolchain is not None:
        named(ask.toolchain, ask.matrix.toolchains)


def with_usual_workload(
    ask: CommitsRequest, repository: Repository, revision: str
) -> CommitsRequest:
    """The same with the matrix's first workload that a server of this source answers."""
    system = source_system(repository.product(repository.revision(revision)))
    return replace(ask, workload=default_workloads(ask.matrix, [system])[0])


def tree_of(repository: Repository, revision: str) -> Tree:
    """All files of a commit, named by its short hash."""
    commit = repository.commit(revision)
    return Tree(
        git=repository.git,
        id=commit.tree,
        origin=f"{repository.source} at {commit.hash[:SHORT]}",
        revision=commit.hash,
    )


def patches_of(ask: CommitsRequest) -> Patches:
    """What is applied to every source before it is built: named edits, then the user's patches."""
    own = user_patches(ask.patches)

    def patches(tree: Tree) -> tuple[Patch, ...]:
        needed = [edit for edit in ask.edits if not _holds(edit, tree)]
        edited = (patch_of(needed, tree.read),) if needed else ()
        return (*edited, *own)

    return patches


def _holds(edit: str, tree: Tree) -> bool:
    """Whether a source already is as the edit would make it, as on one side of a culprit."""
    try:
        patch_of([edit], tree.read)
    except AlreadySoError:
        return True
    return False


def repairs_of(ask: CommitsRequest, repository: Repository) -> tuple[Repair, ...]:
    """The user's repairs, each cherry-picked onto sources that do not build without it."""

    def repair(revision: str) -> Repair:
        commit = repository.commit(repository.revision(revision))

        def apply(tree: Tree) -> tuple[Tree, AppliedPatch] | None:
            changed = picked(repository, commit.hash, tree.id).tree
            if changed == tree.id:
                return None
            patch = AppliedPatch(
                name=commit.hash[:SHORT],
                title=f"repair: {commit.subject}",
                sha256=content_key([commit.hash]),
            )
            return Tree(git=tree.git, id=changed, origin=tree.origin, revision=tree.revision), patch

        return apply

    return tuple(repair(revision) for revision in ask.fixes)


def untried(
    ask: CommitsRequest, trees: Iterable[Tree], tried_ids: Collection[str]
) -> tuple[str, ...]:
    """The other toolchains that fit one of these trees: what may help where none could be built."""
    fit: set[str] = set()
    for tree in trees:
        with contextlib.suppress(BuildError):
            fit |= {choice.toolchain.id for choice in choices_of(tree.read, ask.matrix.toolchains)}
    return tuple(
        toolchain.id
        for toolchain in ask.matrix.toolchains
        if toolchain.id in fit.difference(tried_ids)
    )


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What all candidates of a range share, so that a difference is their own."""

    toolchains: tuple[Toolchain, ...]  # best first
    settings: Settings
    notes: tuple[str, ...]  # where they cannot share it, or not what they would choose themselves


def surroundings_of(ask: CommitsRequest, trees: tuple[Tree, ...]) -> Surroundings:
    """The same libraries and the same database on both sides, where that is possible."""
    toolchains_known = ask.matrix.toolchains
    if ask.toolchain is not None:
        toolchains_known = (named(ask.toolchain, toolchains_known),)
    ends = []
    for tree in trees:
        with contextlib.suppress(BuildError):  # raised when it is built; the search moves inwards
            ends.append(choices_of(tree.read, toolchains_known))
    toolchains, crossing = for_range(ends, toolchains_known)
    library, change = for_databases([choices[0].needs.databases for choices in ends])
    options = ask.settings.options
    if library is None or DATABASE in options:
        settings, change = ask.settings, None if DATABASE in options else change
    else:
        settings = ask.settings.model_copy(update={"options": {**options, DATABASE: library}})
    return Surroundings(
        toolchains=toolchains, settings=settings, notes=tuple(filter(None, (crossing, change)))
    )
