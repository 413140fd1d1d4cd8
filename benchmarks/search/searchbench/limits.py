"""What no search can do better: the information limit of values with Gaussian noise.

The end of the report shows these bounds.
"""

from __future__ import annotations

import math

import numpy as np

from searchbench.markdown import rows

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
        information = (_xlogy(low, low / mixed) + _xlogy(high, high / mixed)) / 2
    return float(np.trapezoid(information, grid)) / math.log(2)


def bits_per_vote(d: float) -> float:
    """The same when the value is turned into good or bad at the middle of both levels."""
    wrong = 0.5 * math.erfc(d / 2 / math.sqrt(2))
    return 1 - _entropy(wrong)


def fewest_runs(n: int, d: float, wrong: float) -> float:
    """Fano's bound on the mean runs of any search that is wrong in ``wrong`` of all cases.

    A search with both levels given and free builds is held to this one as well.
    """
    bits_needed = math.log2(n - 1) - _entropy(wrong) - wrong * math.log2(max(1, n - 2))
    return max(0.0, bits_needed) / bits_per_run(d)


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


WRONG = 0.05
LENGTHS = (16, 128, 1024, 100_000)


def limits_text() -> str:
    """The bounds, without which a target that is not met says little."""
    sizes = (0.5, 1.0, 2.0, 4.0)
    body = [
        [
            f"{d:g}",
            f"{bits_per_run(d):.3f}",
            f"{bits_per_vote(d):.3f}",
            *(
                f"{fewest_runs(n, d, WRONG):.0f} / {expected_runs(n, d, WRONG):.0f}"
                for n in LENGTHS
            ),
        ]
        for d in sizes
    ]
    head = ["d", "bits per value", "bits per vote", *(f"runs, n = {n:,}" for n in LENGTHS)]
    return (
        "## What no search can do better\n\n"
        "Gaussian noise, both levels known, every build for nothing, wrong in 5 %. The first "
        "figure is Fano's bound; the second adds the proof that the place is the right one, which "
        "is what good searches come to.\n\n" + rows(head, body)
    )
