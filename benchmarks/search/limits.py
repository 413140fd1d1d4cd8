"""What no search can do better: the information limit of values with Gaussian noise."""

from __future__ import annotations

import math

import numpy as np

REACH = 10.0  # standard deviations beyond both levels


def bits_per_run(d: float) -> float:
    """What one run tells at most about the side of the step it is on, both levels known.

    The mutual information of a fair coin and a value that is N(0, 1) or N(d, 1), in bits.
    """
    grid = np.linspace(-REACH, d + REACH, 20_001)
    low = np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
    high = np.exp(-0.5 * (grid - d) ** 2) / math.sqrt(2 * math.pi)
    mixed = (low + high) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        told = (_xlogy(low, low / mixed) + _xlogy(high, high / mixed)) / 2
    return float(np.trapezoid(told, grid)) / math.log(2)


def bits_per_vote(d: float) -> float:
    """The same when the value is turned into good or bad at the middle of both levels."""
    wrong = 0.5 * math.erfc(d / 2 / math.sqrt(2))
    return 1 - _entropy(wrong)


def fewest_runs(n: int, d: float, wrong: float) -> float:
    """Fano's bound on the mean runs of any search that is wrong in ``wrong`` of all cases.

    A search with both levels given and free builds is held to this one as well.
    """
    needed = math.log2(n - 1) - _entropy(wrong) - wrong * math.log2(max(1, n - 2))
    return max(0.0, needed) / bits_per_run(d)


def expected_runs(n: int, d: float, wrong: float) -> float:
    """What a good search with both levels given needs: finding the place, and proving it.

    [(1 - wrong) log2 n] / I + 2 log2(1 / wrong) / D, with D the bits by which a run tells one
    level from the other once it is known where to look.
    """
    proof_bits = d**2 / 2 / math.log(2)
    place = (1 - wrong) * math.log2(n) / bits_per_run(d)
    return place + 2 * math.log2(1 / wrong) / proof_bits


def _entropy(chance: float) -> float:
    if chance in {0.0, 1.0}:
        return 0.0
    return -chance * math.log2(chance) - (1 - chance) * math.log2(1 - chance)


def _xlogy(
    weight: np.ndarray[tuple[int], np.dtype[np.float64]],
    ratio: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.where(weight > 0, weight * np.log(ratio), 0.0)
