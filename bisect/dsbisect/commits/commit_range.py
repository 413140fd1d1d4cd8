"""The commits between good and bad: the lines to search, and which of them are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dsbisect.commits.commits_request import SHORT, CommitsRequest, check_ask, tree_of
from dsbuilds.history.equal_commits import CommitGroup, collapse, server_keys, steps_along
from dsbuilds.history.lines import Line, count, lines_between, side_lines
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsharness.products import SourceFacts, source_facts
from dsresults.commits_result import EqualCommits


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
                commits=each.commits,
                kinds=self.source.kinds_of(
                    path for commit in each.commits[1:] for path in self.repository.files(commit)
                ),
            )
            for candidate, each in self.groups.items()
            if len(each.commits) > 1
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

    def members(self, candidate: str, answer: str | None) -> tuple[str, ...]:
        """The commits a suspect stands for: an unmeasured one for all of its class."""
        known = self.groups.get(candidate)
        if known is None or candidate == answer:
            return (self.hashes[candidate],)
        return known.commits

    def sides(self, candidate: str) -> tuple[tuple[str, ...], ...]:
        """The lines through a merge's side branches, as candidates."""
        known = self._known.get(candidate, (self.good,))
        lines = side_lines(self.repository, self.hashes[candidate], *known)
        return tuple(self.collapsed(each) for each in lines)

    def collapsed(self, whole: Line) -> tuple[str, ...]:
        """A line of commits as a line of candidates; both ends are kept."""
        commits = whole.commits
        keys = server_keys(self.repository, commits, paths=self.paths)
        names = []
        for each in collapse(commits, keys.__getitem__):
            name = each.first[:SHORT]
            self.hashes[name] = each.first
            self.groups.setdefault(name, each)
            self._known.setdefault(name, whole.known)
            names.append(name)
        # With --paths the last class may differ elsewhere; and if all is equal from end to end,
        # both ends are still needed to say so.
        if self.paths or len(names) == 1:
            last = commits[-1][:SHORT]
            self.hashes[last] = commits[-1]
            names = [*dict.fromkeys([*names, last])]
        return tuple(names)


def laid_range(ask: CommitsRequest) -> Range:
    """Open the repository and check everything that needs no build."""
    check_ask(ask)
    repository = Repository.open(ask.repository)
    for fix in ask.fixes:
        repository.revision(fix)
    named = {name: repository.named(name) for name in (ask.good, ask.bad)}
    good, bad = (named[name].hash for name in (ask.good, ask.bad))
    for end in (good, bad):
        source = source_facts(repository.product(end))
    if source is None:
        raise AssertionError("it was found by what is known of its source")
    lines = lines_between(repository, good, bad)
    if lines[0].commits[0] == bad:
        good, bad = bad, good
    whole, notes = _that_count(repository, lines)
    taken = tuple(
        f"{name} was taken for {each.taken_for}" for name, each in named.items() if each.taken_for
    )
    scope = Range(
        repository=repository,
        source=source,
        good=good,
        bad=bad,
        paths=ask.paths,
        commits=sum(count(repository, each.known[-1], each.commits[-1]) for each in whole),
        notes=(*taken, *notes),
    )
    scope.lines = tuple(scope.collapsed(each) for each in whole)
    for point in scope.points:
        scope.tree(point)
    return scope


def _that_count(
    repository: Repository, lines: tuple[Line, ...]
) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Of two lines only one, if the other's end makes the same server as its begin does."""
    notes = tuple(note for line in lines for note in line.notes)
    if len(lines) == 1:
        return lines, notes
    for left, (kept, other) in {"good": lines, "bad": lines[::-1]}.items():
        begin, end = other.commits[0], other.commits[-1]
        if len(set(server_keys(repository, (begin, end)).values())) == 1:
            note = (
                f"{left} {end[:SHORT]} makes the same server as {begin[:SHORT]}, where good and "
                f"bad have parted: the search goes from there to {kept.commits[-1][:SHORT]}"
            )
            return (kept,), (note,)
    return lines, notes
