"""The machine's speed while the runs were taken, estimated from them. Core pure logic, no I/O.

The log of each cost is the level of its candidate, plus the speed at that time, plus noise. The
speed is a random walk, the levels are free, so that a step is not mistaken for a change of speed
or the other way round; how far it walks is what makes the values likeliest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpbtrf, dpbtrs

from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.track import TINY, Flags, Floats

PACES = np.geomspace(0.003, 1.0, 8)  # variance of the speed's steps, in variances of the noise
CLEAR_NATS = 2.0  # by so many nats a changing speed must explain the values better
FREE = 4  # runs more than candidates, before anything can be told
FAR = 4.0  # an outlier says nothing of the speed


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """The likeliest levels when the speed walks at one pace."""

    surprise: float
    levels: Floats
    worth: Floats  # candidate, candidate: precision of the levels, in that of one run
    speed: Floats  # of each run
    noise: float


def without_speed(seen: Evidence) -> Evidence:
    """The same without what the machine's speed explains; each candidate's noise as that leaves it.

    ``seen`` itself when a steady machine explains the values as well.
    """
    if len(seen.values) < len(seen.positions) + FREE:
        return seen
    # each machine has a speed of its own
    order = np.argsort(seen.machines, kind="stable")
    values, begins = _without_outliers(seen)[order], np.diff(seen.machines[order], prepend=-1) > 0
    own = np.zeros((len(values), len(seen.positions)))
    own[np.arange(len(values)), seen.owner[order]] = 1.0
    still = _fit(values, own, begins, 0.0)
    best = min(
        (_fit(values, own, begins, float(pace)) for pace in PACES), key=lambda fit: fit.surprise
    )
    if best.surprise + CLEAR_NATS > still.surprise:
        return seen
    speed = np.empty_like(best.speed)
    speed[order] = best.speed
    return _seen_at(seen, replace(best, speed=speed))


def _seen_at(seen: Evidence, fit: _Fit) -> Evidence:
    level = fit.levels[seen.owner]
    rest = seen.values - fit.speed - level
    free = len(rest) - len(seen.positions)
    # the speed has taken a part of the noise with it
    size = np.sqrt(max(TINY, float(rest @ rest)) / free)
    counts = seen.counts
    common = 1 / float(fit.worth.sum()) - 1 / len(rest)
    doubt = counts * (np.diag(np.linalg.inv(fit.worth)) - common)
    return replace(
        seen,
        values=level + rest * min(3.0, fit.noise / size),
        scales=seen.scales * np.sqrt(np.maximum(1.0, doubt))[seen.owner],
    )


def _fit(values: Floats, own: Floats, begins: Flags, pace: float) -> _Fit:
    """The speed w in (1): generalised least squares; the inverse of a walk is tridiagonal."""
    runs, free = len(values), len(values) - own.shape[1]
    both = np.column_stack([own, values])
    if pace > 0:
        bands = np.zeros((2, runs))
        bands[0, 1:] = -1 / pace
        bands[1] = 1 + 2 / pace
        bands[1, -1] = 1 + 1 / pace
        later = np.flatnonzero(begins)[1:]
        bands[0, later] = 0.0
        bands[1, later - 1] = 1 + 1 / pace
        # scipy's own wrappers of these take longer than the work itself
        root, _ = dpbtrf(bands)
        weighed = both - dpbtrs(root, both)[0]
        size = 2 * float(np.log(root[1]).sum()) + runs * np.log(pace)
    else:
        weighed, size = both, 0.0
    worth, pull = own.T @ weighed[:, :-1], own.T @ weighed[:, -1]
    levels: Floats = np.asarray(np.linalg.solve(worth, pull), dtype=np.float64)
    left = weighed[:, -1] - weighed[:, :-1] @ levels  # the noise's part
    rest = values - own @ levels
    square = max(TINY, float(rest @ left))
    surprise = 0.5 * (size + float(np.linalg.slogdet(worth)[1]) + free * np.log(square))
    return _Fit(
        surprise=surprise, levels=levels, worth=worth, speed=rest - left,
        noise=float(np.sqrt(square / free)),
    )  # fmt: skip


def _without_outliers(seen: Evidence) -> Floats:
    middles = seen.middles[seen.owner]
    rest = seen.values - middles
    size = 1.4826 * float(np.median(np.abs(rest)))
    return middles + np.clip(rest, -FAR * size, FAR * size) if size > 0 else seen.values
