"""One target: what is wanted, what was measured, and whether that is met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Target:
    what: str
    wanted: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        return "met" if self.met else "not met"


def at_least(what: str, share: float, error: float, least: float) -> Target:
    return Target(
        what=what,
        wanted=f"at least {least:.1%}",
        measured=f"{share:.1%} ± {error:.1%}",
        met=share >= least,
    )


def at_most(what: str, value: float, error: float, most: float) -> Target:
    return Target(
        what=what,
        wanted=f"at most {most:.1f}",
        measured=f"{value:.1f} ± {error:.1f}",
        met=round(value, 1) <= round(most, 1),  # as they are printed: a bound is known no better
    )
