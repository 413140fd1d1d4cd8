"""Which commits of a repository a survey looks at: tags, revisions, ranges, and a sample."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dsbisect.commits.commits_request import SHORT, tree_of
from dsbuilds.history.repository import Repository
from dsharness.errors import SourceError, UsageError
from dsharness.products import product_of_source, source_facts, version_of_source

PREFIX = "refs/tags/"
GLOB = re.compile(r"[*?\[]")
TAG_VERSION = re.compile(r"(?:^|[-_v])(\d+(?:[.-]\d+)*)$")  # not 1.3.0.rc3
RANGE = re.compile(r"(?P<one>.*?)\.\.\.?(?P<other>.*)")

Numbers = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a user asks for."""

    words: tuple[str, ...] = ()  # revisions, tags, patterns, A..B; none: all releases
    sample: int = 0  # so many further commits
    seed: int = 0
    between: str | None = None  # where the sample is from; None: all releases

    @property
    def everything(self) -> bool:
        return not self.words and not self.sample


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The commits by name, the newest version first, and a note on the sample."""

    commits: Mapping[str, str]
    note: str = ""


def chosen_of(repository: Repository, selection: Selection) -> Chosen:
    """What is surveyed; SourceError names the word that fits nothing."""
    pattern = _releases(repository, needed=selection.everything)
    tags = _Tags(repository=repository, tags=_tags(repository), releases=pattern)
    words = (pattern,) if selection.everything else selection.words
    commits = {name: commit for word in words for name, commit in tags.of(word)}
    if not selection.sample:
        return Chosen(commits=commits)
    where, history = tags.history(selection.between)
    drawn_commits = sampled(history, selection.sample, selection.seed)
    note = (
        f"{len(drawn_commits)} of the {len(history)} commits of {where}, drawn with --seed "
        f"{selection.seed}"
    )
    named_commits = set(commits.values())
    return Chosen(
        commits={
            **commits,
            **{commit[:SHORT]: commit for commit in drawn_commits if commit not in named_commits},
        },
        note=note,
    )


def sampled(commits: Sequence[str], number: int, seed: int) -> tuple[str, ...]:
    """So many, each as likely as any other; equal seeds draw equal ones, in the given order."""
    drawn_commits = set(random.Random(seed).sample(sorted(commits), min(number, len(commits))))  # noqa: S311
    return tuple(commit for commit in commits if commit in drawn_commits)


def numbers_of(tag: str) -> Numbers:
    """NAME-1.4.3-32 is (1, 4, 3, 32); nothing where a tag ends with no version."""
    match = TAG_VERSION.search(tag)
    return tuple(int(number) for number in re.findall(r"\d+", match[1])) if match else ()


def matching(tags: Sequence[str], pattern: str, source: str) -> tuple[str, ...]:
    """The tags of a pattern; SourceError where there is none."""
    matches = tuple(tag for tag in tags if fnmatchcase(tag, pattern))
    if not matches:
        examples = ", ".join(tags[:3])
        raise SourceError(
            f"{source}: none of its {len(tags)} tags matches {pattern!r}",
            hint=f"there are {examples} …" if examples else "fetch its tags: git fetch --tags",
        )
    return matches


@dataclass(frozen=True, kw_only=True)
class _Tags:
    """The tags of a repository, the newest version first, and which of them are releases."""

    repository: Repository
    tags: Mapping[str, str]
    releases: str

    def of(self, word: str) -> Iterator[tuple[str, str]]:
        """The commits that a word means, by name."""
        between = RANGE.fullmatch(word)
        if word in self.tags:
            yield word, self.tags[word]
        elif between:
            yield from self._between(between["one"], between["other"])[0].items()
        elif GLOB.search(word):
            for tag in matching(tuple(self.tags), word, self.repository.source):
                yield tag, self.tags[tag]
        else:
            yield word, self.repository.revision(word)

    def history(self, between: str | None) -> tuple[str, tuple[str, ...]]:
        """All commits from one release to another, those of the branches between them too."""
        if between is None:
            ends = [tag for tag in self._released() if numbers_of(tag)]
            if len(ends) < 2:
                raise SourceError(
                    f"{self.repository.source} has {len(ends)} releases: no commit is between them",
                    hint="name a range: --between A..B",
                )
            between = f"{min(ends, key=numbers_of)}..{max(ends, key=numbers_of)}"
        ends_of = RANGE.fullmatch(between)
        if ends_of is None:
            raise UsageError(f"--between {between}: not a range", hint="--between A..B")
        tips, oldest = self._between(ends_of["one"], ends_of["other"])
        commits = self.repository.git.must(
            "rev-list",
            "--topo-order",
            *tips.values(),
            f"^{oldest}",
            what=f"list the commits of {between}",
        ).split()
        return between, tuple(commits)

    def _between(self, first_end: str, second: str) -> tuple[dict[str, str], str]:
        """The releases from A to B by version, both ends too; and the older end's commit."""
        ends = [self._end(revision or "HEAD") for revision in (first_end, second)]
        (low, older), (high, newer) = sorted(ends, key=lambda end: end[0])
        releases = {
            tag: self.tags[tag]
            for tag in self._released()
            if low <= numbers_of(tag) <= high and numbers_of(tag)
        }
        first = {newer[0]: newer[1]} if newer[1] not in releases.values() else {}
        last = {older[0]: older[1]} if older[1] not in releases.values() else {}
        return {**first, **releases, **last}, older[1]

    def _end(self, name: str) -> tuple[Numbers, tuple[str, str]]:
        """An end of a range: its version, name and commit."""
        commit = self.tags.get(name) or self.repository.revision(name)
        version = numbers_of(name) if name in self.tags else ()
        if not version:
            tree = tree_of(self.repository, commit)
            product = product_of_source(lambda path: tree.read(path) is not None)
            version = numbers_of(version_of_source(product, tree.read) or "") if product else ()
        if not version:
            raise SourceError(
                f"{self.repository.source}: {name!r} has no version, so that releases could lie "
                "between it and another",
                hint="name a release's tag, or list what you mean",
            )
        return version, (name, commit)

    def _released(self) -> tuple[str, ...]:
        return tuple(tag for tag in self.tags if fnmatchcase(tag, self.releases))


def _releases(repository: Repository, *, needed: bool) -> str:
    """Which tags are releases of the product that is checked out."""
    try:
        facts = source_facts(repository.product("HEAD"))
    except SourceError:
        if needed:
            raise
        return "*"
    return "*" if facts is None else facts.release_tags


def _tags(repository: Repository) -> dict[str, str]:
    """Each tag and the commit that it leads to, the newest version first."""
    fields = ("refname", "objecttype", "objectname", "*objecttype", "*objectname")
    task = f"list the tags of {repository.source}"
    listed = repository.git.refs("--sort=-version:refname", PREFIX, fields=fields, what=task)
    return {name.removeprefix(PREFIX): rest[-1] for name, *rest in listed if rest[-2] == "commit"}
