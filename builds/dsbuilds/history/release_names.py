"""How commits are called by releases: the nearest name of one, and the first that has a change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydantic import Field

from dsbuilds.history.repository import Repository
from dsharness.model import Value
from dsharness.plain_text import plain
from dsharness.products import Product, SourceFacts

# What comes before the release it leads to, for git's order of versions.
PREVIEWS = ("-alpha", ".alpha", ".a", "-beta", ".beta", ".b", "-rc", ".rc")
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
        """A tag, a release branch, what `git describe` says, or else the short hash."""
        git = self.repository.git
        asked, what = ("--points-at", commit), f"name {commit[:SHORT]}"
        names = [
            tag.removeprefix("refs/tags/") for (tag,) in git.refs(*asked, "refs/tags", what=what)
        ]
        releases = [name for name in names if self._is_release(name)]
        branches = git.refs(*asked, "refs/heads", "refs/remotes", what=what)
        known = [*releases, *names, *self._maintained(name for (name,) in branches)]
        if known:
            return plain(self._short(known[0]))
        match = f"--match={self.source.release_tags}"
        done = git.call("describe", "--tags", match, commit)
        return plain(self._short(done.stdout.strip())) if done.ok else commit[:SHORT]

    def refs(self) -> dict[str, str]:
        """The tags of releases and the branches that they are made from, and where each leads."""
        listed = self.repository.git.refs(
            "refs/tags", "refs/heads", "refs/remotes",
            fields=("refname", "objectname"), what="list the releases",
        )  # fmt: skip
        return {
            ref: commit
            for ref, commit in listed
            if self._is_release(ref.removeprefix("refs/tags/")) or any(self._maintained([ref]))
        }

    def releases(self, commits: tuple[str, ...]) -> tuple[SeriesRelease, ...]:
        """The first release of each series with one of the commits, and branches without any."""
        holding = {commit: self._holding(commit) for commit in commits}
        oldest: dict[str, str] = {}
        found: dict[str, SeriesRelease] = {}
        for tag in self._tags():
            series = self._series(tag)
            oldest.setdefault(series, tag)
            has = [commit for commit in commits if f"refs/tags/{tag}" in holding[commit]]
            if has and series not in found:
                first = plain(self._short(tag))
                found[series] = SeriesRelease(series=series, commit=has[0], first=first)
        lines = [found[series] for series in oldest if series in found]
        begun = {each for each in found if found[each].first == plain(self._short(oldest[each]))}
        return (*_folded(lines, begun), *self._unreleased(holding, found))

    def _unreleased(
        self, holding: Mapping[str, set[str]], found: Mapping[str, SeriesRelease]
    ) -> Iterator[SeriesRelease]:
        """Branches that have a commit of which no release of theirs can be seen."""
        released = {each.commit for each in found.values()}
        told = set(found)
        for commit, refs in holding.items():
            for name in map(self._short, self._maintained(sorted(refs))):
                series = self._series(self._prefix + name)
                if series not in told and (commit not in released or name not in MAIN):
                    told.add(series)
                    yield SeriesRelease(series=plain(series), commit=commit)

    def _tags(self) -> list[str]:
        """Every release, oldest first."""
        previews = [f"versionsort.suffix={each}" for each in PREVIEWS]
        listed = self.repository.git.refs(
            "--sort=version:refname", "refs/tags", fields=("refname:strip=2",), order=previews,
            what="list the releases",
        )  # fmt: skip
        return [tag for (tag,) in listed if self._is_release(tag)]

    def _holding(self, commit: str) -> set[str]:
        """Every tag and branch with a commit in it."""
        what = f"list what has {commit[:SHORT]}"
        return {name for (name,) in self.repository.git.refs("--contains", commit, what=what)}

    def _is_release(self, tag: str) -> bool:
        return fnmatchcase(tag, self.source.release_tags)

    def _maintained(self, refs: Iterable[str]) -> Iterator[str]:
        """The branches that releases are made from, neither a fork's nor one for a change."""
        for ref in refs:
            found = PLACES.fullmatch(ref)
            name = found["name"] if found else ""
            if name in MAIN or (name and fnmatchcase(name, self.source.release_branches)):
                yield name

    def _short(self, name: str) -> str:
        return name.removeprefix(self._prefix)

    def _series(self, tag: str) -> str:
        return self.product.releases.branch_of(self._short(tag))


def _folded(lines: list[SeriesRelease], begun: set[str]) -> Iterator[SeriesRelease]:
    """Neighbours that have the same commit since their first release, as one line."""
    run: list[SeriesRelease] = []
    for line in [*lines, None]:
        fits = line is not None and line.series in begun
        if run and not (fits and line is not None and line.commit == run[0].commit):
            last = run[-1].series if len(run) > 1 else ""
            yield run[0].model_copy(update={"until": last})
            run = []
        if line is not None and fits:
            run.append(line)
        elif line is not None:
            yield line
