"""One source in one toolchain: built, started, measured with a bind."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.survey.build_result import BuildResult
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sources.source_tree import Tree
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError, InstanceError
from dsharness.measure.golden_state import golden_state
from dsharness.model import Matrix, Settings, SystemName, Toolchain
from dsharness.systems import Seed

SEED = Seed(entries=2, settings=Settings(id="default"))

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A tag's source and a toolchain that fits it."""

    engine: Engine
    matrix: Matrix
    name: str
    tree: Tree
    toolchain: Toolchain

    @property
    def supply(self) -> SourceSupply:
        made = SourceSupply(engine=self.engine, matrix=self.matrix, toolchains=(self.toolchain,))
        made.add(self.name, self.tree)
        return made

    @property
    def identity(self) -> str:
        """Changes with the source and the toolchain, and with nothing else."""
        return self.supply.identities[self.name]

    def run(self, progress: Progress) -> tuple[BuildResult, bool]:
        """How far it gets, and whether the result would be the same another time."""
        begun, built = time.monotonic(), False
        try:
            image = self.supply.image(self.name, progress)
            built = True
            golden = golden_state(self.engine, image, SystemName.TREE, SEED, progress=progress)
        except CandidateError as error:
            answered = isinstance(error, InstanceError) and error.answered
            outcome = BuildResult(
                built=built, starts=answered, why_not=_line(error), log=str(error.log or ""),
                seconds=round(time.monotonic() - begun, 1),
            )  # fmt: skip
            return outcome, _lasts(error)
        # Searches use another number of users, so this state would only take space.
        self.engine.podman("rmi", golden.reference, cleanup=True)
        seconds = round(time.monotonic() - begun, 1)
        return BuildResult(built=True, starts=True, binds=True, seconds=seconds), True


def _lasts(error: CandidateError) -> bool:
    if isinstance(error, UnbuildableError):
        return error.lasting
    return isinstance(error, InstanceError)


def _line(error: CandidateError) -> str:
    return " ".join(error.message.split()).removeprefix("unbuildable: ")
