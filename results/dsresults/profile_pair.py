"""Profiles of both sides of a step, and what differs between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pydantic import Field, computed_field

from dsharness.model import CpuProfile, Finding, Value

MOST_CHANGES = 10


class FunctionChange(Value):
    """The CPU time of an operation in a function itself, without what it calls."""

    function: str
    before_us: float
    after_us: float

    @property
    def change_us(self) -> float:
        return self.after_us - self.before_us


class ProfilePair(Value):
    """Both sides of one campaign's answer; a side that could not be profiled says why."""

    campaign_id: str
    workload_id: str
    names: tuple[str, str] = Field(description="the candidates, in the order of the line")
    before: CpuProfile | None = None
    after: CpuProfile | None = None
    note: str = Field(default="", description="why a side has no profile")

    @computed_field(description="functions whose own CPU time per operation changed most")
    def changes(self) -> tuple[FunctionChange, ...]:
        if self.before is None or self.after is None:
            return ()
        first, second = own_us(self.before), own_us(self.after)
        all_ = (
            FunctionChange(
                function=name, before_us=first.get(name, 0.0), after_us=second.get(name, 0.0)
            )
            for name in sorted(first.keys() | second.keys())
        )
        return tuple(sorted(all_, key=lambda each: -abs(each.change_us))[:MOST_CHANGES])

    @property
    def finding(self) -> Finding:
        """It, for the store."""
        sides = [f"{p.cpu_us_per_op:,.0f} µs" for p in (self.before, self.after) if p]
        return Finding.now(
            "profile",
            self,
            title=f"profiles of {' and '.join(self.names)} with {self.workload_id}",
            answer=self.note or f"CPU time per operation: {', then '.join(sides)}",
            campaigns=(self.campaign_id,),
        )


def own_us(profile: CpuProfile) -> Mapping[str, float]:
    """The CPU time of an operation in each function itself."""
    own: dict[str, float] = defaultdict(float)
    for frames, us in profile.us_per_op().items():
        own[frames[-1]] += us
    return own


def profiles_of(findings: Iterable[Finding], campaigns: Iterable[str]) -> tuple[ProfilePair, ...]:
    """Those that were stored for these campaigns."""
    wanted = set(campaigns)
    return tuple(
        ProfilePair.model_validate(each.value)
        for each in findings
        if each.kind == "profile" and wanted.issuperset(each.campaigns)
    )
