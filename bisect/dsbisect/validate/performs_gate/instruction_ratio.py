"""How many more instructions an operation takes: the tie-breaker where times are too noisy."""

from __future__ import annotations

from dataclasses import dataclass

from dsbisect.validate.performs_gate.margin import change_text
from dsbisect.validate.performs_gate.paired_samples import opened_lab, sampled_pairs
from dsbisect.validate.trial import Trial
from dsharness.measure.metrics import INSTRUCTIONS
from dsharness.model import Workload
from dsresults.number_text import whole

# How far a ratio of two counts strays, with a margin: 0.3 % for PBKDF2, where almost all
# instructions are the hash's; more where an operation is short (docs/validate.md).
STRAY_PCT = 0.5
FEW_INSTRUCTIONS = 10_000_000  # of an operation
FEW_STRAY_PCT = 3.0


@dataclass(frozen=True, kw_only=True)
class InstructionRatio:
    """Counts of both sides."""

    stock: float
    patched: float

    @property
    def slower_pct(self) -> float:
        return 100 * (self.patched / self.stock - 1)

    @property
    def interval(self) -> tuple[float, float]:
        stray = STRAY_PCT if min(self.stock, self.patched) > FEW_INSTRUCTIONS else FEW_STRAY_PCT
        return (self.slower_pct - stray, self.slower_pct + stray)

    @property
    def text(self) -> str:
        return f"{change_text(self.interval)} by instructions"

    @property
    def figures(self) -> dict[str, str | int | float]:
        return {
            "instructions of an operation, stock": whole(self.stock),
            "instructions of an operation, patched": whole(self.patched),
        }


def instruction_ratio(trial: Trial, workload: Workload) -> InstructionRatio | None:
    """None where a server could not be counted: that is no reason to refuse it."""
    with opened_lab(trial, metric=INSTRUCTIONS.name) as lab:
        found = sampled_pairs(trial, lab, workload, bool, most=1, metric=INSTRUCTIONS.name)
    both = [
        (one.value(INSTRUCTIONS.name), two.value(INSTRUCTIONS.name)) for one, two in found.pairs
    ]
    counts = [InstructionRatio(patched=one, stock=two) for one, two in both if one and two]
    return counts[0] if counts else None
