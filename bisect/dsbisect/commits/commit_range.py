"""The commits between good and bad: the lines to search, and which of them are equal.

All that can be said of them before anything is built or measured follows by pure logic: what a
search will take, and how likely each is the culprit by the files it changes. That is mild on
purpose: a culprit in an unexpected place costs a run or two more, never a wrong answer
(docs/search.md has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from pydantic import Field

from dsbisect.commits.commits_request import (
    SHORT,
    CommitsRequest,
    check_ask,
    surroundings_of,
    tree_of,
)
from dsbisect.search_options import run_s
from dsbuilds.history.changed_functions import functions_along
from dsbuilds.history.lines import (
    CommitGroup,
    Line,
    collapse,
    count,
    lines_between,
    server_keys,
    side_lines,
    steps_along,
)
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import UsageError
from dsharness.model import Value
from dsharness.products import SourceFacts, source_facts
from dsharness.products.product import SERVER
from dsresults.commits_result import EqualCommits

LEAST, MOST = 0.01, 100.0  # above this a wrong guess would cost more than a right one saves


def weight(files: Iterable[str], table: Mapping[str, float], fallback: float) -> float:
    """The weight of the most suspicious file; the first pattern that matches a file decides."""
    return max((_weight_of(path, table, fallback) for path in files), default=fallback)


def prior_of(
    candidates: Mapping[str, Iterable[str]], source: SourceFacts, own: Mapping[str, float]
) -> dict[str, float]:
    """Each candidate's weight, by the files that differ from the one before; ``own`` goes first."""
    hot_paths = source.hot_paths
    table = {**own, **{pattern: hot_paths[pattern] for pattern in hot_paths if pattern not in own}}
    return {name: weight(files, table, source.other_paths) for name, files in candidates.items()}


def prior_table(texts: Iterable[str]) -> dict[str, float]:
    """The user's own patterns; UsageError says what is wrong."""
    own: dict[str, float] = {}
    for text in texts:
        pattern, _, value = text.rpartition("=")
        try:
            own[pattern] = float(value)
        except ValueError:
            own[pattern] = math.nan
        if not pattern or not LEAST <= own[pattern] <= MOST:
            raise UsageError(
                f"--prior {text!r}: must be PATTERN=WEIGHT with a weight from {LEAST:g} to "
                f"{MOST:g}",
                hint="for example --prior 'src/core/*=5'",
            )
    return own


def _weight_of(path: str, table: Mapping[str, float], fallback: float) -> float:
    return next((value for pattern, value in table.items() if fnmatchcase(path, pattern)), fallback)


@dataclass(kw_only=True)
class Range:
    """Both ends and everything between; candidates are named by short hashes."""

    repository: Repository
    source: SourceFacts
    good: str
    bad: str
    paths: tuple[str, ...]
    commits: int
    notes: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...] = ()  # one, or where they have parted: to bad, to good
    trees: dict[str, Tree] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    groups: dict[str, CommitGroup] = field(default_factory=dict)
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name under which campaigns of this range are stored."""
        return f"{self.repository.name}:{self.good[:SHORT]}..{self.bad[:SHORT]}"

    @property
    def line(self) -> tuple[str, ...]:
        """The only line, or the one that leads to bad."""
        return self.lines[0]

    @property
    def parted(self) -> bool:
        return len(self.lines) > 1

    @property
    def points(self) -> tuple[str, ...]:
        """Good and bad, with the commit where they have parted between them."""
        if not self.parted:
            return self.line[0], self.line[-1]
        to_bad, to_good = self.lines
        return to_good[-1], to_bad[0], to_bad[-1]

    @property
    def ends(self) -> tuple[str, str]:
        return self.points[0], self.points[-1]

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for line in self.lines for name in line))

    def around(self, candidate: str) -> tuple[str, ...]:
        """The line on which a candidate, or the merge that brought it, lies."""
        commit = self.hashes[candidate]
        for line in self.lines[:-1]:
            if self.repository.is_ancestor(commit, self.hashes[line[-1]]):
                return line
        return self.lines[-1]

    def only_in_good(self, candidate: str) -> bool:
        """Whether it was made on good's own branch: good has it, bad does not."""
        return not self.repository.is_ancestor(self.hashes[candidate], self.bad)

    @property
    def equal(self) -> tuple[EqualCommits, ...]:
        """The groups of more than one commit, with what the others change."""
        return tuple(
            EqualCommits(
                candidate=candidate,
                commits=group.commits,
                kinds=self.source.kinds_of(
                    path for commit in group.commits[1:] for path in self.repository.files(commit)
                ),
            )
            for candidate, group in self.groups.items()
            if len(group.commits) > 1
        )

    def tree(self, candidate: str) -> Tree:
        if candidate not in self.trees:
            self.trees[candidate] = tree_of(self.repository, self.hashes[candidate])
        return self.trees[candidate]

    def changed(self, line: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The files by which each candidate differs from the one before it on this line."""
        names = {self.hashes[name]: name for name in line}
        steps = steps_along(self.repository, tuple(names))
        return {
            names[commit]: tuple(step.path for step in changes) for commit, changes in steps.items()
        }

    def changed_functions(self, line: Sequence[str]) -> dict[str, frozenset[str]]:
        """The functions of the server by which each differs from the one before it."""
        names = {self.hashes[name]: name for name in line}
        functions = functions_along(
            self.repository, tuple(names), lambda path: self.source.kind_of(path) == SERVER
        )
        return {names[commit]: changed for commit, changed in functions.items()}

    def members(self, candidate: str, answer: str | None) -> tuple[str, ...]:
        """The commits a suspect stands for: an unmeasured one for all of its class."""
        group = self.groups.get(candidate)
        if group is None or candidate == answer:
            return (self.hashes[candidate],)
        return group.commits

    def sides(self, candidate: str) -> tuple[tuple[str, ...], ...]:
        """The lines through a merge's side branches, as candidates."""
        known = self._known.get(candidate, (self.good,))
        lines = side_lines(self.repository, self.hashes[candidate], *known)
        return tuple(self.collapsed(line) for line in lines)

    def collapsed(self, line: Line) -> tuple[str, ...]:
        """A line of commits as a line of candidates; both ends are kept."""
        commits = line.commits
        keys = server_keys(self.repository, commits, paths=self.paths)
        names = []
        for commit_class in collapse(commits, keys.__getitem__):
            name = commit_class.first[:SHORT]
            self.hashes[name] = commit_class.first
            self.groups.setdefault(name, commit_class)
            self._known.setdefault(name, line.known)
            names.append(name)
        # With --paths the last class may differ elsewhere; and if all is equal from end to end,
        # both ends are still needed to say so.
        if self.paths or len(names) == 1:
            last = commits[-1][:SHORT]
            self.hashes[last] = commits[-1]
            names = [*dict.fromkeys([*names, last])]
        return tuple(names)


def laid_range(ask: CommitsRequest, repository: Repository | None = None) -> Range:
    """Open the repository unless it is given, and check everything that needs no build."""
    check_ask(ask)
    repository = repository or Repository.open(ask.repository)
    for fix in ask.fixes:
        repository.revision(fix)
    revisions = {name: repository.named(name) for name in (ask.good, ask.bad)}
    good, bad = (revisions[name].hash for name in (ask.good, ask.bad))
    for end in (good, bad):
        source = source_facts(repository.product(end))
    if source is None:
        raise AssertionError("it was found by what is known of its source")
    lines = lines_between(repository, good, bad)
    if lines[0].commits[0] == bad:
        good, bad = bad, good
    counting_lines, notes = _that_count(repository, lines)
    remarks = tuple(
        f"{name} was taken for {revision.taken_for}"
        for name, revision in revisions.items()
        if revision.taken_for
    )
    scope = Range(
        repository=repository,
        source=source,
        good=good,
        bad=bad,
        paths=ask.paths,
        commits=sum(count(repository, line.known[-1], line.commits[-1]) for line in counting_lines),
        notes=(*remarks, *notes),
    )
    scope.lines = tuple(scope.collapsed(line) for line in counting_lines)
    for point in scope.points:
        scope.tree(point)
    return scope


def _that_count(
    repository: Repository, lines: tuple[Line, ...]
) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """The lines that count: of two only one, if the other's ends make the same server."""
    notes = tuple(note for line in lines for note in line.notes)
    if len(lines) == 1:
        return lines, notes
    for side, (kept_line, other_line) in {"good": lines, "bad": lines[::-1]}.items():
        begin, end = other_line.commits[0], other_line.commits[-1]
        if len(set(server_keys(repository, (begin, end)).values())) == 1:
            note = (
                f"{side} {end[:SHORT]} makes the same server as {begin[:SHORT]}, where good and "
                f"bad have parted: the search goes from there to {kept_line.commits[-1][:SHORT]}"
            )
            return (kept_line,), (note,)
    return lines, notes


# Measured on two cores with the commands in docs/builds.md; a figure to plan with, not a promise.
FIRST_BUILD_S = 210.0
NEXT_BUILD_S = 25.0
CLEAN_BUILD_S = 240.0
GOLDEN_S = 25.0
RUNS_EACH = 3  # of one candidate, when the difference is large; see `dsbisect bisect plan`


class CommitsForecast(Value):
    """Candidates, builds, runs and hours, as far as they can be known."""

    good: str
    bad: str
    commits: int
    candidates: tuple[str, ...]
    subjects: dict[str, str]
    equal: tuple[EqualCommits, ...]
    builds: int = Field(description="at most, when every commit builds")
    clean_builds: int
    samples: int
    hours: float
    notes: tuple[str, ...] = ()


def forecast_of(ask: CommitsRequest, scope: Range) -> CommitsForecast:
    """A forecast for one large culprit on a line where every commit builds."""
    points = len(scope.points)
    steps = math.ceil(math.log2(max(1, *(len(line) - 1 for line in scope.lines))))
    clean = 2 if ask.proof else 0
    further = 2 if ask.proof else 0  # with and without the culprit
    builds = points + steps + further
    samples = RUNS_EACH * (points + steps + clean + 2 * further)
    seconds = (
        FIRST_BUILD_S
        + (builds - 1) * NEXT_BUILD_S
        + clean * CLEAN_BUILD_S
        + (builds + clean) * GOLDEN_S
        + samples * run_s(ask.workload, paired=False)
    )
    repository = scope.repository
    return CommitsForecast(
        good=scope.good,
        bad=scope.bad,
        commits=scope.commits,
        candidates=scope.candidates,
        subjects={name: repository.commit(scope.hashes[name]).subject for name in scope.candidates},
        equal=scope.equal,
        builds=builds,
        clean_builds=clean,
        samples=samples,
        hours=round(seconds / 3600, 2),
        notes=(*scope.notes, *_crossing(ask, scope)),
    )


def _crossing(ask: CommitsRequest, scope: Range) -> tuple[str, ...]:
    """A note about a range whose ends are of different eras."""
    ends = tuple(scope.trees[end] for end in scope.points)
    return surroundings_of(ask, ends).notes


def expected_text(forecast: CommitsForecast) -> str:
    """The forecast for a screen; the first line has the totals."""
    merged = {equal_commits.candidate: equal_commits for equal_commits in forecast.equal}
    head = (
        f"{forecast.commits} commits, {len(forecast.candidates)} candidates: about "
        f"{forecast.builds} builds, {forecast.clean_builds} clean ones, "
        f"{forecast.samples} samples, {forecast.hours:.1f} hours"
    )
    lines = [head]
    for name in forecast.candidates:
        lines.append(f"  {name} {forecast.subjects[name]}")
        if name in merged:
            equal = merged[name]
            kinds = ", ".join(equal.kinds) or "nothing"
            lines.append(f"    and {len(equal.commits) - 1} equal to it ({kinds} only)")
    return "\n".join([*lines, *(f"note: {note}" for note in forecast.notes)])
