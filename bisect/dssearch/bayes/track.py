"""A line of candidates with the prior chance of each to be the step. Core pure logic, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

TINY = 1e-300  # instead of a 0 that something is divided by, or whose log is taken


@dataclass(frozen=True, kw_only=True, eq=False)
class Track:
    """Candidate k is the step when it is the first that differs from k - 1; so 0 never is."""

    names: tuple[str, ...]
    index: Mapping[str, int]
    weights: Floats
    sums: Floats  # sums[k]: the weight of the steps up to k
    squares: Floats

    def mass(self, low: int, high: int) -> float:
        """Return the prior weight of a step after ``low`` and not after ``high``."""
        return float(self.sums[high] - self.sums[low])


def track(names: Sequence[str], prior: Mapping[str, float]) -> Track:
    """Weights are relative; a candidate without one has 1."""
    weights = np.ones(len(names))
    if prior:
        weights = np.array([max(0.0, prior.get(name, 1.0)) for name in names])
    weights[0] = 0.0
    return Track(
        names=tuple(names),
        index=dict(zip(names, range(len(names)), strict=True)),
        weights=weights,
        sums=np.cumsum(weights),
        squares=np.cumsum(weights**2),
    )


def log_sum(logs: Floats | Sequence[Floats], axis: int = -1) -> Floats:
    """The log of a sum of exponentials, along one axis; scipy's own takes several times as long."""
    values = np.asarray(logs, dtype=np.float64)
    peak = values.max(axis=axis, keepdims=True)
    safe = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        summed = np.log(np.exp(values - safe).sum(axis=axis, keepdims=True)) + safe
    sums: Floats = np.squeeze(summed, axis=axis)
    return sums
