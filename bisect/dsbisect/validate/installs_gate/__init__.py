"""Gate 2: the package manager puts the patched packages over stock ones, and back."""

from __future__ import annotations

from dsbisect.validate.check import Gate
from dsbisect.validate.installs_gate import downgrade, removal, upgrade
from dsbisect.validate.step import Step

STEPS: tuple[Step, ...] = (
    Step(
        gate=Gate.INSTALLS, name="upgrade", seconds=75, run=upgrade.run,
        title="upgrading a filled stock server to the patched packages",
    ),
    Step(
        gate=Gate.INSTALLS, name="downgrade", seconds=45, run=downgrade.run,
        title="downgrading to the stock packages again",
    ),
    Step(
        gate=Gate.INSTALLS, name="removal", seconds=45, run=removal.run,
        title="removing the packages, stock and patched",
    ),
)  # fmt: skip
