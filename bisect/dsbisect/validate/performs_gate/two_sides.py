"""The stock and the patched server as the two candidates of a lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsbisect.lab.candidates import Progress
from dsbisect.validate.trial import Trial
from dsbuilds.built_row import check_promise
from dsharness.measure.golden_state import Golden
from dsharness.model import Image, SystemName


@dataclass(frozen=True, kw_only=True)
class TwoSides:
    """A ``Supply``: both images exist already."""

    trial: Trial

    @property
    def identities(self) -> Mapping[str, str]:
        return {}

    @property
    def runtimes(self) -> Mapping[str, str]:
        return {}

    def uneven(self) -> tuple[str, ...]:
        return ()

    def image(self, candidate: str, progress: Progress) -> Image:
        del progress
        return self.trial.stock if candidate == self.trial.row.id else self.trial.patched

    def ahead(self, candidate: str) -> None:
        """Nothing takes long."""

    def system(self, candidate: str) -> SystemName:
        del candidate
        return self.trial.row.system

    def check(self, candidate: str, golden: Golden) -> None:
        del candidate
        check_promise(golden)
