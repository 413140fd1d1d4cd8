"""Gate 5: what the patch does to the security of passwords, and of the system around the server."""

from __future__ import annotations

from dsbisect.validate.check import Gate
from dsbisect.validate.safe_gate import (
    existing_passwords,
    new_inventory,
    new_traces,
    password_strength,
)
from dsbisect.validate.step import Step, judged

STEPS: tuple[Step, ...] = (
    Step(
        gate=Gate.SAFE, name="password-strength", seconds=30, depends=("accept_weaker",),
        run=judged(Gate.SAFE, "password-strength", password_strength.run),
        title="comparing how stock and patched servers store passwords",
    ),
    Step(
        gate=Gate.SAFE, name="existing-passwords", seconds=15,
        run=judged(Gate.SAFE, "existing-passwords", existing_passwords.run),
        title="looking at what becomes of passwords that are stored already",
    ),
    Step(
        gate=Gate.SAFE, name="inventory", seconds=30,
        run=judged(Gate.SAFE, "inventory", new_inventory.run),
        title="listing ports, privileged files and libraries, stock and patched",
    ),
    Step(
        gate=Gate.SAFE, name="traces", seconds=90,
        run=judged(Gate.SAFE, "traces", new_traces.run),
        title="searching what the servers wrote and told for secrets, stock and patched",
    ),
)  # fmt: skip
