"""Samples of several machines, made comparable. Core pure logic, no I/O.

Each machine has an offset on the log scale. Candidates that were measured on several machines say
how large it is; how far that is in doubt, every plausible offset is weighed (``shifts``), so that
a machine that measured mostly one side is not taken for a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Flags, Floats, Ints

ROUNDS = 20  # of fitting; outliers count less in each
OUTLIER = 2.0  # standard deviations from which on a run counts less
PRIOR_RUNS = 2.0  # the prior noise counts as this many
REACH = 3.5  # standard errors on each side that are weighed
SPACING = 1.2  # of the offsets that are weighed, in what all samples together could tell apart
MOST = 20  # offsets on each side of the fitted one


@dataclass(frozen=True, kw_only=True, eq=False)
class Offsets:
    """By machine, relative to the one with the most samples."""

    sizes: Floats
    errors: Floats


def tied(owner: Ints, machines: Ints, ends: tuple[int, int]) -> Flags:
    """Return the samples that can be compared: their machines share candidates, directly or not.

    Of several such groups it is the one that measured both ends, else the largest.
    """
    group = np.arange(machines.max() + 1)
    for candidate in np.unique(owner):
        tied_machines = np.unique(group[machines[owner == candidate]])
        group[np.isin(group, tied_machines)] = tied_machines[0]
    groups = group[machines]
    of_both_ends = set(groups[owner == ends[0]]) & set(groups[owner == ends[1]])
    largest = min(of_both_ends) if of_both_ends else int(np.argmax(np.bincount(groups)))
    return np.asarray(groups == largest)


def offsets(values: Floats, owner: Ints, machines: Ints) -> Offsets:
    """Return them from candidates that several machines measured, whatever their levels are."""
    count = int(machines.max()) + 1
    movable = np.delete(np.arange(count), np.argmax(np.bincount(machines)))
    is_other = (machines[:, None] == movable[None, :]).astype(np.float64)
    freedom = max(0, len(values) - len(np.unique(owner)) - len(movable))
    weights: Floats = np.ones(len(values))
    fitted: Floats = np.zeros(len(movable))
    errors: Floats = np.zeros(len(movable))
    places = np.unique(owner, return_inverse=True)[1]
    columns = np.column_stack([is_other, values])
    for _ in range(ROUNDS):
        centred = _centred(columns, places, weights)
        inside, remainder = centred[:, :-1], centred[:, -1]
        worth = inside.T @ (weights[:, None] * inside)
        fitted = np.asarray(np.linalg.solve(worth, inside.T @ (weights * remainder)), np.float64)
        remainder = remainder - inside @ fitted
        square = PRIOR_RUNS * Belief.noise**2 + float(weights @ remainder**2)
        noise = np.sqrt(square / (PRIOR_RUNS + freedom))
        errors = np.asarray(noise * np.sqrt(np.diag(np.linalg.inv(worth))), dtype=np.float64)
        before, weights = (
            weights,
            np.minimum(1.0, OUTLIER * noise / np.maximum(TINY, np.abs(remainder))),
        )
        if np.array_equal(weights, before):
            break  # a further round would change nothing
    sizes, doubts = np.zeros(count), np.zeros(count)
    sizes[movable], doubts[movable] = fitted, errors
    return Offsets(sizes=sizes, errors=doubts)


def _centred(columns: Floats, places: Ints, weights: Floats) -> Floats:
    """Take out the mean of each candidate."""
    total = np.bincount(places, weights=weights)
    means = [np.bincount(places, weights=weights * column) / total for column in columns.T]
    centred: Floats = columns - np.stack(means, axis=1)[places]
    return centred


@dataclass(frozen=True, kw_only=True, eq=False)
class Shifts:
    """What each machine's offset may be, in addition to the fitted one."""

    sizes: Floats  # shift, machine
    log_weights: Floats
    scales: Floats  # by machine: of the noise, where shifts lie too far apart


def shifts(machines: Ints, errors: Floats, noise: float) -> Shifts:
    """Return one for each machine; a single one, of 0, if there is one machine."""
    count = len(errors)
    doubtful = np.flatnonzero(errors > 0)
    sizes, scales = [np.zeros((1, count))], np.ones(count)
    weights = [np.full(1, max(1.0, len(doubtful)))]
    runs = np.bincount(machines, minlength=count)
    for machine in doubtful:
        own = runs[machine]
        told_apart = noise * np.sqrt(1 / own + 1 / (runs.sum() - own))
        reach = REACH * errors[machine]
        side = int(min(MOST, np.ceil(reach / (SPACING * told_apart))))
        scales[machine] = max(1.0, reach / side / (2 * told_apart))
        away = np.delete(np.linspace(-reach, reach, 2 * side + 1), side)
        part = np.zeros((len(away), count))
        part[:, machine] = away
        sizes.append(part)
        weights.append(np.ones(len(away)))
    whole = np.concatenate(weights)
    return Shifts(
        sizes=np.concatenate(sizes), log_weights=np.log(whole / whole.sum()), scales=scales
    )
