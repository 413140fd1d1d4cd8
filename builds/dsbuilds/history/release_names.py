"""How commits are called by releases: the nearest name of one, and the first that has a change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from pydantic import Field

from dsbuilds.history.repository import Repository
from dsharness.model import Value
from dsharness.plain_text import plain
from dsharness.products import Product, SourceFacts

# What comes before the release it leads to, for git's order of versions.
PREVIEWS = ("-alpha", ".alpha", ".a", "-beta", ".beta", ".b", "-rc", ".rc")
PREVIEW = re.compile(r"[.-]?(alpha|beta|a|b|rc|scratch)\d")
MAIN = ("main", "master")
PLACES = re.compile(r"refs/(?:heads|remotes/(?:origin|upstream))/(?P<name>.+)")
SHORT = 12


class SeriesRelease(Value):
    """How a change came into a series of releases."""

    series: str = Field(description="2.0, or the branch where no release has it yet")
    until: str = Field(default="", description="the last of neighbouring series that began with it")
    commit: str
    first: str | None = Field(default=None, description="the first release that has it")

    @property
    def text(self) -> str:
        """``2.0: 120a477cbd8c, first in 2.0.17``."""
        commit = self.commit[:SHORT]
        if self.first is None:
            return f"{self.series}: {commit}, in no release yet"
        if self.until:
            return f"{self.series} to {self.until}: {commit}, in every release"
        return f"{self.series}: {commit}, first in {self.first}"


class TaggedRelease(NamedTuple):
    """A release by its tag."""

    tag: str
    name: str
    series: str
    commit: str


@dataclass(frozen=True, kw_only=True)
class ReleaseNames:
    """What a product calls its releases and their branches, in a repository."""

    repository: Repository
    source: SourceFacts
    product: Product

    @property
    def project(self) -> str:
        """What its tags begin with, up to the version; without it, the product's title."""
        return self._prefix.rstrip("-_/.v") or self.product.title

    @property
    def _prefix(self) -> str:
        return re.split(r"[*?\[]", self.source.release_tags)[0]

    def nearest(self, commit: str) -> str:
        """Return a tag, a release branch, what `git describe` says, or else the short hash."""
        git = self.repository.git
        selection, task = ("--points-at", commit), f"name {commit[:SHORT]}"
        names = [
            tag.removeprefix("refs/tags/")
            for (tag,) in git.refs(*selection, "refs/tags", what=task)
        ]
        releases = [name for name in names if self._is_release(name)]
        branches = git.refs(*selection, "refs/heads", "refs/remotes", what=task)
        candidates = [*releases, *names, *self._maintained(name for (name,) in branches)]
        if candidates:
            return plain(self._short(candidates[0]))
        match = f"--match={self.source.release_tags}"
        result = git.call("describe", "--tags", match, commit)
        return plain(self._short(result.stdout.strip())) if result.ok else commit[:SHORT]

    def refs(self) -> dict[str, str]:
        """The tags of releases and the branches that they are made from, and where each leads."""
        listed = self.repository.git.refs(
            "refs/tags",
            "refs/heads",
            "refs/remotes",
            fields=("refname", "objectname"),
            what="list the releases",
        )
        return {
            ref: commit
            for ref, commit in listed
            if self._is_release(ref.removeprefix("refs/tags/")) or any(self._maintained([ref]))
        }

    def releases(self, commits: tuple[str, ...]) -> tuple[SeriesRelease, ...]:
        """The first release of each series with one of the commits, and branches without any."""
        holding = {commit: self._holding(commit) for commit in commits}
        oldest: dict[str, str] = {}
        releases: dict[str, SeriesRelease] = {}
        for tag in self._tags():
            series = self._series(tag)
            oldest.setdefault(series, tag)
            holders = [commit for commit in commits if f"refs/tags/{tag}" in holding[commit]]
            if holders and series not in releases:
                first = plain(self._short(tag))
                releases[series] = SeriesRelease(series=series, commit=holders[0], first=first)
        lines = [releases[series] for series in oldest if series in releases]
        starting = {
            series
            for series in releases
            if releases[series].first == plain(self._short(oldest[series]))
        }
        return (*_folded(lines, starting), *self._unreleased(holding, releases))

    @property
    def tagged(self) -> tuple[TaggedRelease, ...]:
        """Every release but previews, oldest first."""
        fields = ("refname:strip=2", "objectname", "*objectname")
        listed = self._listed(fields)
        return tuple(
            TaggedRelease(
                tag=tag,
                name=plain(self._short(tag)),
                series=plain(self._series(tag)),
                commit=commits[-1],  # an annotated tag has a name of its own before it
            )
            for tag, *commits in listed
            if not PREVIEW.search(self._short(tag))
        )

    def _unreleased(
        self, holding: Mapping[str, set[str]], releases: Mapping[str, SeriesRelease]
    ) -> Iterator[SeriesRelease]:
        """Yield branches that have a commit of which no release of theirs can be seen."""
        released = {release.commit for release in releases.values()}
        series_done = set(releases)
        for commit, refs in holding.items():
            for name in map(self._short, self._maintained(sorted(refs))):
                series = self._series(self._prefix + name)
                if series not in series_done and (commit not in released or name not in MAIN):
                    series_done.add(series)
                    yield SeriesRelease(series=plain(series), commit=commit)

    def _tags(self) -> list[str]:
        """Return every release, oldest first."""
        return [tag for (tag,) in self._listed(("refname:strip=2",))]

    def _listed(self, fields: tuple[str, ...]) -> list[list[str]]:
        """Return these of every release, oldest first; the first one is its tag."""
        tags = self.repository.git.refs(
            "--sort=version:refname",
            "refs/tags",
            fields=fields,
            order=[f"versionsort.suffix={suffix}" for suffix in PREVIEWS],
            what="list the releases",
        )
        return [facts for facts in tags if self._is_release(facts[0])]

    def _holding(self, commit: str) -> set[str]:
        """Return every tag and branch with a commit in it."""
        task = f"list what has {commit[:SHORT]}"
        return {name for (name,) in self.repository.git.refs("--contains", commit, what=task)}

    def _is_release(self, tag: str) -> bool:
        return fnmatchcase(tag, self.source.release_tags)

    def _maintained(self, refs: Iterable[str]) -> Iterator[str]:
        """Yield the branches that releases are made from, neither a fork's nor one for a change."""
        for ref in refs:
            match = PLACES.fullmatch(ref)
            name = match["name"] if match else ""
            if name in MAIN or (name and fnmatchcase(name, self.source.release_branches)):
                yield name

    def _short(self, name: str) -> str:
        return name.removeprefix(self._prefix)

    def _series(self, tag: str) -> str:
        return self.product.releases.branch_of(self._short(tag))


def _folded(lines: list[SeriesRelease], starting: set[str]) -> Iterator[SeriesRelease]:
    """Yield neighbours that have the same commit since their first release, as one line."""
    run: list[SeriesRelease] = []
    for line in [*lines, None]:
        fits = line is not None and line.series in starting
        if run and not (fits and line is not None and line.commit == run[0].commit):
            last = run[-1].series if len(run) > 1 else ""
            yield run[0].model_copy(update={"until": last})
            run = []
        if line is not None and fits:
            run.append(line)
        elif line is not None:
            yield line
