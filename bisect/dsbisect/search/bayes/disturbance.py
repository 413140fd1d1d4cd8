"""How much less a run on a disturbed machine counts. Core pure logic, no I/O.

Stolen time, an unsteady calibrator and a lab without CPU are covariates: their effect on a cost is
not known in advance, so it is estimated from the runs themselves. The variance of a run is
``noise² · (1 + growth · burden²)``, and every plausible growth is weighed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.track import TINY, Floats, log_sum

GROWTHS = np.array([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
PRIOR = np.array([0.25, 0.17, 0.17, 0.15, 0.11, 0.08, 0.05, 0.02])
NOISES = np.geomspace(0.25, 4.0, 17)  # around the one that the residuals suggest
TAIL = 4.0  # degrees of freedom


def widened(seen: Evidence) -> Evidence:
    """(5): the noise of burdened runs is multiplied; ``seen`` itself where there are none."""
    if not np.any(seen.burden > 0):
        return seen
    chances = _chances(_residuals(seen), seen.burden)
    variance = 1 + seen.burden**2 * float(chances @ GROWTHS)
    return replace(seen, scales=seen.scales * np.sqrt(variance))


def _residuals(seen: Evidence) -> Floats:
    """Of candidates that ran more than once; the median has taken its part of each; else NaN."""
    counts = seen.counts[seen.owner]
    rest: Floats = seen.values - seen.middles[seen.owner]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 1, rest * np.sqrt(counts / (counts - 1.0)), np.nan)


def _chances(rest: Floats, load: Floats) -> Floats:
    """Of each growth, after what the runs say."""
    known = np.isfinite(rest)
    if not np.any(known):
        return PRIOR
    rest, load = rest[known], load[known]
    size = max(1e-4, 1.4826 * float(np.median(np.abs(rest))))
    scales = np.sqrt(1 + GROWTHS[:, None] * load[None, :] ** 2)
    noise = size * NOISES[:, None, None] * scales[None]
    each = -np.log(noise) - (TAIL + 1) / 2 * np.log1p((rest / noise) ** 2 / TAIL)
    likely = log_sum(each.sum(-1), axis=0) + np.log(PRIOR)
    chances: Floats = np.exp(likely - log_sum(likely))
    return chances / max(TINY, float(chances.sum()))
