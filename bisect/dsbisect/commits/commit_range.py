"""The commits between good and bad: the line to search, and which of them are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dsbisect.commits.commits_request import SHORT, Ask, check_ask, tree_of
from dsbuilds.history.equal_commits import CommitGroup, collapse, server_keys, steps_along
from dsbuilds.history.lines import Line, count, line, side_lines
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
    line: tuple[str, ...] = ()
    trees: dict[str, Tree] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    groups: dict[str, CommitGroup] = field(default_factory=dict)
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name under which campaigns of this range are stored."""
        return f"{self.repository.name}:{self.good[:SHORT]}..{self.bad[:SHORT]}"

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


def survey(ask: Ask) -> Range:
    """Open the repository and check everything that needs no build."""
    check_ask(ask)
    repository = Repository.open(ask.repository)
    for fix in ask.fixes:
        repository.revision(fix)
    good, bad = (repository.revision(name) for name in (ask.good, ask.bad))
    for end in (good, bad):
        source = source_facts(repository.product(end))
    if source is None:
        raise AssertionError("it was found by what is known of its source")
    whole = line(repository, good, bad)
    scope = Range(
        repository=repository,
        source=source,
        good=whole.commits[0],
        bad=bad,
        paths=ask.paths,
        commits=count(repository, whole.commits[0], bad),
        notes=whole.notes,
    )
    scope.line = scope.collapsed(whole)
    for candidate in (scope.line[0], scope.line[-1]):
        scope.tree(candidate)
    return scope
