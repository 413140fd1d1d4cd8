"""Tag after tag, toolchain after toolchain; known results are not computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from dsbisect.commits.commits_request import SHORT, tree_of
from dsbisect.survey.build_result import BuildResult, TagResult, keep, outcome_key, recall
from dsbisect.survey.probe import Probe
from dsbuilds.history.repository import Repository
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_choice import ways_of
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import reap
from dsharness.errors import BuildError, SourceError
from dsharness.model import Matrix, Toolchain
from dsharness.products import source_facts


class SurveyListener(Protocol):
    """Receives the progress."""

    def begin(self, tags: int, known: int, new: int) -> None: ...

    def trying(self, tag: str, toolchain: str, what: str) -> None: ...

    def found(self, finding: TagResult) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The question about a repository."""

    matrix: Matrix
    repository: str
    tags: str | None = None  # a pattern; None: the releases of the product
    toolchain: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Task:
    """A line to fill; without a probe no toolchain of the matrix fits."""

    tag: str
    commit: str
    probe: Probe | None
    outcome: BuildResult | None

    def finding(self, outcome: BuildResult, *, known: bool) -> TagResult:
        toolchain = self.probe.toolchain.id if self.probe else ""
        return TagResult(
            tag=self.tag, commit=self.commit, toolchain=toolchain, outcome=outcome, known=known
        )


def run_survey(survey: Survey, engine: Engine, listener: SurveyListener) -> Iterator[TagResult]:
    """Every tag in every toolchain that fits, newest first; each result is kept at once.

    A candidate's failure is a result; a failure of the machine or network ends the survey.
    """
    repository = Repository.open(survey.repository)
    names = tags_of(repository, survey.tags or _releases(repository))
    tasks = [task for name in names for task in _tasks(survey, engine, repository, name)]
    new = sum(task.outcome is None for task in tasks)
    listener.begin(len(names), len(tasks) - new, new)
    reap(engine)
    for task in tasks:
        finding = _known(task) or _tried(task, listener)
        listener.found(finding)
        yield finding


def _releases(repository: Repository) -> str:
    """Which tags are releases of the product that is checked out."""
    facts = source_facts(repository.product("HEAD"))
    return "*" if facts is None else facts.release_tags


def _tasks(survey: Survey, engine: Engine, repository: Repository, tag: str) -> Iterator[_Task]:
    tree = tree_of(repository, f"{PREFIX}{tag}")
    commit = (tree.revision or "")[:SHORT]
    try:
        fitting = _toolchains(survey, tree)
    except BuildError as error:
        refused = BuildResult(why_not=error.message.removeprefix("unbuildable: "))
        yield _Task(tag=tag, commit=commit, probe=None, outcome=refused)
        return
    for toolchain in fitting:
        probe = Probe(engine=engine, matrix=survey.matrix, name=tag, tree=tree, toolchain=toolchain)
        known = recall(outcome_key(probe.identity))
        yield _Task(tag=tag, commit=commit, probe=probe, outcome=known)


def _toolchains(survey: Survey, tree: Tree) -> tuple[Toolchain, ...]:
    ways = ways_of(tree.read, survey.matrix.toolchains)
    return tuple({way.toolchain.id: way.toolchain for way in ways}.values())


def _known(task: _Task) -> TagResult | None:
    """Equal sources of two tags are one: the first result counts for both."""
    outcome = task.outcome
    if outcome is None and task.probe is not None:
        outcome = recall(outcome_key(task.probe.identity))
    return None if outcome is None else task.finding(outcome, known=True)


def _tried(task: _Task, listener: SurveyListener) -> TagResult:
    probe = task.probe
    if probe is None:
        raise AssertionError("a task without a probe has its outcome")
    outcome, lasting = probe.run(lambda what: listener.trying(task.tag, probe.toolchain.id, what))
    if lasting:
        keep(outcome_key(probe.identity), outcome)
    return task.finding(outcome, known=False)


PREFIX = "refs/tags/"


def tags_of(repository: Repository, pattern: str) -> tuple[str, ...]:
    """Those that match the pattern, the newest version first."""
    listed = repository.git.must(
        "for-each-ref", "--sort=-version:refname", "--format=%(refname)", PREFIX,
        what=f"list the tags of {repository.source}",
    )  # fmt: skip
    known = [line.removeprefix(PREFIX) for line in listed.splitlines()]
    return chosen(known, pattern, repository.source)


def chosen(known: Sequence[str], pattern: str, source: str) -> tuple[str, ...]:
    found = tuple(tag for tag in known if fnmatchcase(tag, pattern))
    if not found:
        some = ", ".join(known[:3])
        raise SourceError(
            f"{source}: none of its {len(known)} tags matches {pattern!r}",
            hint=f"there are {some} …" if some else "fetch its tags: git fetch --tags",
        )
    return found
