"""How suspicious commits are by what a load runs: what they change takes another time at both ends.

It is a guess, and bounded as one: most of the weight stays where the changed files put it, so that
a culprit elsewhere, such as a default that moved, costs a build more at most. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import chain

from dsharness.model import CpuProfile
from dsharness.model.measured import FRAMES_APART

SHARE = 0.4  # of all suspicion, that goes by functions (docs/decisions.md, 42)
LEAST_CANDIDATES = 24  # two profiles cost what two builds do
CLEAR = 4.0  # standard errors of what two profiles say of a function
LEAST_PART = 0.02  # of an operation's time
WORD = re.compile(r"[A-Za-z_]\w*")


def hot_functions(before: CpuProfile, after: CpuProfile) -> dict[str, float]:
    """Return by how many µs an operation differs in each function with all that it calls."""
    (first, first_us), (second, second_us) = map(_times_seen, (before, after))
    least_us = LEAST_PART * max(before.cpu_us_per_op, after.cpu_us_per_op)
    changes = {}
    for name in first.keys() | second.keys():
        change_us = abs(second[name] * second_us - first[name] * first_us)
        stray_us = math.hypot(
            first_us * math.sqrt(first[name]), second_us * math.sqrt(second[name])
        )
        if change_us > max(least_us, CLEAR * stray_us):
            changes[name] = change_us
    return changes


def _times_seen(profile: CpuProfile) -> tuple[Counter[str], float]:
    """Return in how many stacks each function is, and the time that one stack stands for."""
    counts = Counter[str]()
    for stack, count in profile.stacks.items():
        for name in {_name(frame) for frame in stack.split(FRAMES_APART)}:
            counts[name] += count
    return counts, profile.cpu_us_per_op / max(1, profile.seen)


def _name(frame: str) -> str:
    """Return a function's own name, without its class, its arguments and what a compiler adds."""
    words = WORD.findall(frame.partition("(")[0].split(".")[0])
    return words[-1] if words else frame


def weighed_by_functions(
    weights: Mapping[str, float], changed: Mapping[str, AbstractSet[str]], hot: Mapping[str, float]
) -> dict[str, float]:
    """Return the weights with a share by the hottest function that each candidate changes."""
    heats = {
        name: max((hot.get(function, 0.0) for function in changed.get(name, ())), default=0.0)
        for name in weights
    }
    whole, heat = sum(weights.values()), sum(heats.values())
    if not heat:
        return dict(weights)
    scale = len(weights) / whole
    return {
        name: (1 - SHARE) * scale * weight + SHARE * len(weights) * heats[name] / heat
        for name, weight in weights.items()
    }


def suspects_text(changed: Mapping[str, AbstractSet[str]], hot: Mapping[str, float]) -> str:
    """Return how many candidates are suspected by what they change, and by which functions."""
    named = set(chain.from_iterable(changed.values())) & hot.keys()
    number = sum(1 for functions in changed.values() if named & functions)
    first = sorted(named, key=lambda name: (-hot[name], name))[:3]
    functions = f": {', '.join(first)}" if first else ""
    return (
        f"{number} of {len(changed)} candidates change functions whose time differs between both "
        f"ends{functions}"
    )
