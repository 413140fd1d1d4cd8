"""How likely each level makes what was measured. Core pure logic, no I/O."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from dsbisect.posterior.evidence import Evidence
from dsbisect.posterior.lattice import Lattice
from dsbisect.posterior.track import TINY, Floats

PACES = np.geomspace(0.003, 1.0, 6)  # variance of the speed's steps, in variances of the noise
BELIEVED = 4.0  # by so many nats a changing speed must explain the values better


def log_likelihood(seen: Evidence, grid: Lattice) -> Floats:
    """For each noise, measured candidate and level; Student's t, so an outlier weighs little."""
    order = np.argsort(seen.owner, kind="stable")
    starts = np.searchsorted(seen.owner[order], np.arange(len(seen.positions)))
    distance = seen.values[order, None] - grid.levels[None, :]
    scales = seen.scales[order, None]
    tables = np.empty((len(grid.noises), len(seen.positions), len(grid.levels)))
    for at, (noise, tail) in enumerate(zip(grid.noises, grid.tails, strict=True)):
        size = noise * scales
        constant = gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * np.log(tail * np.pi)
        each = constant - np.log(size) - (tail + 1) / 2 * np.log1p((distance / size) ** 2 / tail)
        tables[at] = np.add.reduceat(each, starts, axis=0)
    return tables


def with_strays(tables: Floats, grid: Lattice, strays: float) -> Floats:
    """Each candidate's own level lies a little off that of its segment: no runs can tell why."""
    if strays <= 0:
        return tables
    distance = np.subtract.outer(grid.levels, grid.levels) / strays
    kernel = np.exp(-0.5 * distance**2)
    kernel /= kernel.sum(1, keepdims=True)
    peak = tables.max(-1, keepdims=True)
    mixed: Floats = np.log(np.maximum(TINY, np.exp(tables - peak) @ kernel.T)) + peak
    return mixed


def without_shared_speed(seen: Evidence, expected: Floats) -> Evidence:
    """Take from each sample what those before it say about the machine's speed.

    ``expected`` is the level of each candidate as it looks so far; what is left over wanders like
    the speed does, if it wanders at all. What each sample is expected to be after those before it
    (Kalman's filter) makes the samples independent again.
    """
    if len(seen.values) < 6:
        return seen
    rest = seen.values - expected[seen.owner]
    size = 1.4826 * float(np.median(np.abs(rest)))
    if size <= 0:
        return seen
    rest = np.clip(rest / size, -3, 3)
    predicted, doubt = _filtered(rest, PACES)
    surprise = _surprise(rest[:, None] - predicted, doubt)
    best = int(np.argmin(surprise))
    if surprise[best] + BELIEVED > float(_surprise(rest[:, None], np.ones((len(rest), 1)))[0]):
        return seen
    return seen.shifted(seen.values - size * predicted[:, best], np.sqrt(doubt[:, best]))


def _filtered(rest: Floats, paces: Floats) -> tuple[Floats, Floats]:
    """For each sample and pace: the speed as foreseen, and the variance of what is left."""
    speed, unsure = np.zeros(len(paces)), np.zeros(len(paces))
    predicted, doubt = np.empty((len(rest), len(paces))), np.empty((len(rest), len(paces)))
    for at, value in enumerate(rest):
        unsure = unsure + paces
        predicted[at], doubt[at] = speed, 1 + unsure
        gain = unsure / (1 + unsure)
        speed = speed + gain * (value - speed)
        unsure = unsure * (1 - gain)
    return predicted, doubt


def _surprise(rest: Floats, doubt: Floats) -> Floats:
    """Minus the log-likelihood, with the size of the noise that fits best."""
    fit = np.mean(rest**2 / doubt, axis=0)
    surprise: Floats = 0.5 * len(rest) * np.log(np.maximum(fit, TINY)) + 0.5 * np.log(doubt).sum(0)
    return surprise
