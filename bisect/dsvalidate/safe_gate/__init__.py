"""Gate 5: what the patch does to the security of passwords, and of the system around the server."""

from __future__ import annotations

from functools import partial

from dsvalidate.check import Gate
from dsvalidate.dirsrv import existing_passwords, password_strength
from dsvalidate.safe_gate import new_inventory, new_traces
from dsvalidate.sides import Sides
from dsvalidate.step import Step, StepRun, judged
from dsvalidate.step_code import SERVED
from dsvalidate.step_tools import EvidenceFolder, StepTools


def _step(name: str, seconds: float, title: str, run: StepRun, inputs: object = None) -> Step:
    run = judged(Gate.SAFE, name, run)
    return Step(
        gate=Gate.SAFE, name=name, seconds=seconds, title=title, run=run, inputs=inputs,
        procedures=SERVED,
    )  # fmt: skip


def steps(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, *, accept_weaker: bool
) -> tuple[Step, ...]:
    """Of stored passwords first; what the servers left behind is looked through at the end."""
    return (
        _step(
            "password-strength", 30, "comparing how stock and patched servers store passwords",
            partial(password_strength.run, sides, tools, accept_weaker=accept_weaker),
            inputs=accept_weaker,
        ),
        _step(
            "existing-passwords", 15,
            "looking at what becomes of passwords that are stored already",
            partial(existing_passwords.run, sides, tools),
        ),
        _step(
            "inventory", 30, "listing ports, privileged files and libraries, stock and patched",
            partial(new_inventory.run, sides, tools, evidence),
        ),
        _step(
            "traces", 90,
            "searching what the servers wrote and told for secrets, stock and patched",
            partial(new_traces.run, sides, tools, evidence),
        ),
    )  # fmt: skip
