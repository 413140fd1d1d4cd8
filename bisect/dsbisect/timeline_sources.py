"""The releases of a repository as sources: which there are between two ends, and what builds them.

All are built with one toolchain as far as that can be, and filled in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commits_request import (
    SHORT,
    CommitsRequest,
    Surroundings,
    surroundings_of,
    tree_of,
)
from dsbisect.compared_sources import request_of
from dsbuilds.history.release_names import ReleaseNames, TaggedRelease
from dsbuilds.history.repository import Repository
from dsharness.containers.engine import Engine
from dsharness.errors import UsageError
from dsharness.model import Settings, SystemName
from dsharness.products import product, source_facts, source_system
from dsharness.yaml_files.problems import suggestion
from dsresults.compare.release_timeline import Release, trunk_of

if TYPE_CHECKING:
    from dsbisect.study_lab import Scene
    from dsbisect.timeline_question import Timeline

TIP = "HEAD"


@dataclass(frozen=True, kw_only=True)
class TimelineSources:
    """All releases, as they are built."""

    request: CommitsRequest
    repository: Repository
    project: str
    releases: tuple[Release, ...]

    @classmethod
    def of(cls, study: Timeline, scene: Scene) -> TimelineSources:
        """Open the repository; UsageError where there are no two releases between the ends."""
        repository = Repository.open(study.repository)
        tip = repository.revision(study.between.rpartition("..")[2] or TIP)
        product_id = repository.product(tip)
        facts = source_facts(product_id)
        assert facts is not None  # noqa: S101 - it is a product whose source is known
        names = ReleaseNames(repository=repository, source=facts, product=product(product_id))
        releases = tuple(_between(study.between, names, tip))
        if len(trunk_of(releases)) < 2:
            raise UsageError(
                f"{study.between}: fewer than two releases of {study.repository} lie there",
                hint="`git tag` lists them; either end may be left out",
            )
        return cls(
            request=request_of(
                study, scene, study.repository, releases[0].commit, releases[-1].commit
            ),
            repository=repository,
            project=names.project,
            releases=releases,
        )

    @property
    def ends(self) -> tuple[str, str]:
        return self.releases[0].name, self.releases[-1].name

    @cached_property
    def surroundings(self) -> Surroundings:
        """What all share; it takes a look into the files of both ends."""
        ends = (self.releases[0], self.releases[-1])
        trees = tuple(tree_of(self.repository, release.commit) for release in ends)
        return surroundings_of(self.request, trees)

    @property
    def settings(self) -> Settings:
        return self.surroundings.settings

    @property
    def system(self) -> SystemName:
        """What serves them."""
        return source_system(self.repository.product(self.request.bad))

    def supply(self, engine: Engine) -> SourceSupply:
        """Return what builds them."""
        supply = SourceSupply(
            engine=engine,
            matrix=self.request.matrix,
            toolchains=self.surroundings.toolchains,
        )
        for release in self.releases:
            supply.add(release.name, tree_of(self.repository, release.commit))
        return supply


def _between(between: str, names: ReleaseNames, tip: str) -> Iterator[Release]:
    """Yield the releases from the first end to the last, and the tip where it is none."""
    first, _, last = between.partition("..")
    tagged = names.tagged
    start = _place(first, tagged) if first else 0
    end = next((number for number, one in enumerate(tagged) if one.commit == tip), None)
    chosen = tagged[start : len(tagged) if end is None else end + 1]
    commits = names.repository.commits("--no-walk=unsorted", *(one.commit for one in chosen), tip)
    dates = {commit.hash: commit.date for commit in commits}
    for one in chosen:
        yield Release(name=one.name, commit=one.commit, date=dates[one.commit], series=one.series)
    if end is None:
        name = f"{last or TIP}-{tip[:SHORT]}".replace("/", "-")
        yield Release(name=name, commit=tip, date=dates[tip], series=last or TIP)


def _place(name: str, tagged: tuple[TaggedRelease, ...]) -> int:
    """Return where a release stands; UsageError with what it may have meant."""
    for number, one in enumerate(tagged):
        if name in {one.name, one.tag}:
            return number
    meant = suggestion(name, (one.name for one in tagged))
    raise UsageError(
        f"{name}: no release of this repository.{meant}",
        hint="`git tag` lists them",
    )
