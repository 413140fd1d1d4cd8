"""Two sources to compare: revisions of a repository, a pull request, or a patch on a revision.

Both are built with one toolchain and filled in the same way, so that a difference is their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commits_request import (
    SHORT,
    CommitsRequest,
    Surroundings,
    surroundings_of,
    tree_of,
)
from dsbuilds.edits.edit import Patch
from dsbuilds.edits.patch_file import user_patches
from dsbuilds.history.relevant_files import server_key
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsharness.containers.engine import Engine
from dsharness.errors import UsageError
from dsharness.model import Settings, SystemName, Value
from dsharness.products import source_system

if TYPE_CHECKING:
    from dsbisect.comparison_question import Compare
    from dsbisect.study import SuiteStudy
    from dsbisect.study_lab import Scene
    from dslab.candidates import Supply

PULL = re.compile(r"(?:pull/|#)(?P<number>\d{1,9})")


class ComparedSides(Value):
    """What both sides are called, and what a reader should know of them."""

    names: tuple[str, str]
    titles: tuple[str, str]
    notes: tuple[str, ...] = ()


class TwoMade(Protocol):
    """Both, where they are more than two rows."""

    @property
    def names(self) -> tuple[str, str]: ...

    @property
    def sides(self) -> ComparedSides: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def system(self) -> SystemName: ...

    def supply(self, engine: Engine) -> Supply: ...


@dataclass(frozen=True, kw_only=True)
class TwoSources:
    """Both, as they are built."""

    request: CommitsRequest
    repository: Repository
    names: tuple[str, str]
    titles: tuple[str, str]
    trees: tuple[Tree, Tree]
    patched: Path | None = None  # what is applied to the second one alone

    @classmethod
    def of(cls, study: Compare, scene: Scene) -> TwoSources:
        """Open the repository, and find both; UsageError where they make the same server."""
        assert study.repository is not None  # noqa: S101 - asked by a study that names one
        repository = Repository.open(study.repository)
        first, second = _ends(repository, study.first, study.second or study.first)
        trees = tree_of(repository, first), tree_of(repository, second)
        names = (first[:SHORT], second[:SHORT])
        title = _title(study.second or "", second)
        if study.patch is not None:
            title = f"{study.first} with {study.patch.name}"
            names = (names[0], f"{names[0]}-patched")
            trees = trees[0], replace(trees[1], origin=f"{trees[1].origin} with {study.patch.name}")
        elif server_key(trees[0].listing()) == server_key(trees[1].listing()):
            raise UsageError(
                f"{study.first} and {study.second} make the same server",
                hint="nothing that it is made of differs between them",
            )
        return cls(
            request=request_of(study, scene, study.repository, first, second),
            repository=repository,
            names=names,
            titles=(_title(study.first, first), title),
            trees=trees,
            patched=study.patch,
        )

    @cached_property
    def surroundings(self) -> Surroundings:
        """What both share; it takes a look into their files."""
        return surroundings_of(self.request, self.trees)

    @property
    def settings(self) -> Settings:
        return self.surroundings.settings

    @property
    def system(self) -> SystemName:
        """What serves both."""
        return source_system(self.repository.product(self.request.bad))

    @property
    def sides(self) -> ComparedSides:
        notes = self.surroundings.notes
        return ComparedSides(names=self.names, titles=self.titles, notes=notes)

    def supply(self, engine: Engine) -> SourceSupply:
        """Return what builds them."""
        own = user_patches((self.patched,)) if self.patched else ()

        def patches(tree: Tree) -> tuple[Patch, ...]:
            return own if tree.origin == self.trees[1].origin else ()

        supply = SourceSupply(
            engine=engine,
            matrix=self.request.matrix,
            toolchains=self.surroundings.toolchains,
            patches=patches,
        )
        for name, tree in zip(self.names, self.trees, strict=True):
            supply.add(name, tree)
        return supply


def request_of(
    study: SuiteStudy, scene: Scene, repository: str, first: str, last: str
) -> CommitsRequest:
    """What is asked of sources that are built, and not searched."""
    return CommitsRequest(
        matrix=scene.matrix,
        workload=scene.matrix.workloads[0],  # what is built does not depend on it
        settings=scene.settings(study),
        repository=repository,
        good=first,
        bad=last,
        toolchain=study.toolchain,
    )


def _ends(repository: Repository, first: str, second: str) -> tuple[str, str]:
    """Both as hashes; against a pull request the first one is where that parted from it."""
    base, tip = (repository.revision(_spelled(name)) for name in (first, second))
    if PULL.fullmatch(second) and not repository.is_ancestor(base, tip):
        base = repository.git.must(
            "merge-base", base, tip, what=f"find where {second} parted from {first}"
        ).strip()
    return base, tip


def _spelled(name: str) -> str:
    """As git calls it: `pull/7665` is a pull request's head."""
    match = PULL.fullmatch(name)
    return f"refs/pull/{match['number']}/head" if match else name


def _title(name: str, revision: str) -> str:
    return name[:SHORT] if revision.startswith(name) else f"{name} ({revision[:SHORT]})"
