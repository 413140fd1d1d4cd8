"""One source in one toolchain: built, started, filled with a little and asked for it.

Its result is kept on disk, by what decides it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import Field, model_validator

from dsbisect.commits.commit_candidates import SourceSupply
from dsbuilds.build_cache import builds_home
from dsbuilds.drivers import tree
from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_choice import choices_of
from dsbuilds.toolchains.toolchain_image import toolset_of
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import CandidateError, InstanceError
from dsharness.measure.golden_state import golden_state
from dsharness.model import Facts, Matrix, Settings, SystemName, Toolchain
from dsharness.model.value import Value
from dsharness.process.command import atomic_write
from dsharness.progress import Progress
from dsharness.systems import SYSTEMS, Seed

ALIKE, BUILDS = "fails alike with every file", "builds with every file"


class BuildResult(Value):
    """How far it got, and why not further; equal sources share it, whatever their names."""

    built: bool = False
    starts: bool = False  # its server gave a first answer
    answers: bool = False  # and served what it was filled with
    why_not: str = ""
    every_file: str = ""  # what came of it in a plain checkout; empty: not tried
    facts: Facts = Field(default_factory=dict)  # what its server says of itself
    seconds: float = 0.0
    log: str = ""

    @model_validator(mode="before")
    @classmethod
    def _as_kept_before(cls, data: object) -> object:
        """Read a result of when every server was asked for binds."""
        if not isinstance(data, dict) or "binds" not in data:
            return data
        return {"answers" if name == "binds" else name: value for name, value in data.items()}

    @property
    def reached(self) -> tuple[bool, bool, bool]:
        return self.built, self.starts, self.answers


class Attempt(Value):
    """What came of a source in one toolchain."""

    toolchain: str
    outcome: BuildResult


class SourceResult(Value):
    """A line of the table."""

    place: int = Field(default=0, exclude=True)  # in the table
    source: str  # a tag, or what the user called it
    commit: str
    product: str = ""  # whose source it is
    version: str = ""  # as its own files say
    shows: tuple[str, ...] = ()  # what tells its era
    toolchain: str  # empty: none of the matrix fits
    outcome: BuildResult
    before: tuple[Attempt, ...] = ()  # in toolchains that were tried, too
    known: bool = False  # from an earlier survey

    @property
    def broken(self) -> bool:
        """Whether the failure is its own: it fails alike in a plain checkout."""
        return self.outcome.every_file == ALIKE


REVISION = 3  # raise this when the same source may now get a different result


def outcome_key(identity: str, system: SystemName) -> str:
    """``identity`` names the source and its toolchain; the rest is the lab's own part."""
    lab = [REVISION, tree.REVISION, tree.scripts_text(), SYSTEMS[system].revision]
    return content_key([identity, lab])


def recall(key: str) -> BuildResult | None:
    """The outcome; None when there is none, or none that can be read."""
    try:
        return BuildResult.model_validate_json(_path(key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(key: str, outcome: BuildResult) -> None:
    atomic_write(_path(key), outcome.model_dump_json(indent=2) + "\n")


def _path(key: str) -> Path:
    return builds_home() / ".surveys" / f"{key}.json"


ENTRIES = 2
PREFIX = "unbuildable: "


@dataclass(frozen=True, kw_only=True)
class ProbeStep:
    """What came of a stage: so far, or of the whole."""

    outcome: BuildResult
    ended: bool = True
    lasting: bool = True  # whether it would be the same another time


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A source and a toolchain that fits it."""

    engine: Engine
    matrix: Matrix
    name: str
    tree: Tree
    toolchain: Toolchain

    @cached_property
    def supply(self) -> SourceSupply:
        supply = SourceSupply(engine=self.engine, matrix=self.matrix, toolchains=(self.toolchain,))
        supply.add(self.name, self.tree)
        return supply

    @cached_property
    def key(self) -> str:
        """Changes with the source, the toolchain and the lab's own part, and with nothing else."""
        return outcome_key(self.supply.identities[self.name], self.system)

    @property
    def seed(self) -> Seed:
        """What little shows that it serves."""
        content = SYSTEMS[self.system].content(number=ENTRIES)
        return Seed(content=content, settings=Settings(id="default"))

    @property
    def system(self) -> SystemName:
        """What serves it."""
        return self.supply.system(self.name)

    def build(self, progress: Progress) -> ProbeStep:
        """The server's build, kept for the next stage."""
        begun_s = time.monotonic()
        try:
            built, _ = self.supply.build(self.name, progress)
        except CandidateError as error:
            return _failed(error, BuildResult(), time.monotonic() - begun_s)
        # The build may have been made in an earlier survey, which was interrupted.
        seconds = built.provenance.seconds
        return ProbeStep(outcome=BuildResult(built=True, seconds=seconds), ended=False)

    def serve(self, built: BuildResult, progress: Progress) -> ProbeStep:
        """Say whether what was built starts and serves what it is filled with."""
        begun_s = time.monotonic()
        try:
            image = self.supply.image(self.name, progress)
            golden = golden_state(self.engine, image, self.system, self.seed, progress=progress)
        except CandidateError as error:
            return _failed(error, built, time.monotonic() - begun_s)
        # Searches fill it with more, so this state would only take space.
        self.engine.podman("rmi", golden.reference, cleanup=True)
        seconds = round(built.seconds + time.monotonic() - begun_s, 1)
        return ProbeStep(
            outcome=BuildResult(
                built=True, starts=True, answers=True, facts=golden.facts, seconds=seconds
            )
        )

    def build_whole(self, failed: BuildResult, progress: Progress) -> ProbeStep:
        """Say whether it fails alike where nothing is left out: as it is, then with its settings.

        A tree may need a setting to come as far as its own fault.
        """
        try:
            (choice, *_) = choices_of(self.tree.read, (self.toolchain,))
            toolset = toolset_of(self.engine, self.matrix, self.toolchain, progress=progress)
            sentence = ""
            for needs in dict.fromkeys((replace(choice.needs, settings=()), choice.needs)):
                order = TreeOrder(
                    tree=self.tree, needs=needs, toolset=toolset, clean=True, whole=True
                )
                sentence = self._said_of_whole(order, failed, progress)
                if sentence in {ALIKE, BUILDS}:
                    break
        except CandidateError:
            return ProbeStep(outcome=failed, lasting=False)
        return ProbeStep(outcome=failed.model_copy(update={"every_file": sentence}))

    def _said_of_whole(self, order: TreeOrder, failed: BuildResult, progress: Progress) -> str:
        """Compare a plain build with the failure; CandidateError where it says nothing lasting."""
        try:
            build_tree(self.engine, order, progress=progress)
        except UnbuildableError as error:
            if not error.lasting:
                raise
            return _alike(failed.why_not, error)
        return BUILDS


def _alike(why_not: str, error: UnbuildableError) -> str:
    """A build with several jobs may print its errors in another order."""
    line = _line(error)
    cause = why_not.rpartition(" (while it ran ")[0]
    if line == why_not or (cause and cause in _text(error.log)):
        return ALIKE
    return f"fails with every file too, by {line}"


def _text(log: Path | None) -> str:
    try:
        return "" if log is None else log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _failed(error: CandidateError, so_far: BuildResult, took_s: float) -> ProbeStep:
    answered = isinstance(error, InstanceError) and error.answered
    outcome = BuildResult(
        built=so_far.built,
        starts=answered,
        why_not=_line(error),
        log=str(error.log or ""),
        seconds=round(so_far.seconds + took_s, 1),
    )
    return ProbeStep(outcome=outcome, lasting=_lasts(error))


def _lasts(error: CandidateError) -> bool:
    if isinstance(error, UnbuildableError):
        return error.lasting
    return isinstance(error, InstanceError) and not error.killed


def _line(error: CandidateError) -> str:
    return " ".join(error.message.split()).removeprefix(PREFIX)
