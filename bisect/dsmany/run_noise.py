"""How much runs vary on each machine of a search, and where they vary too much. Pure.

A machine's own speed, and what all of a turn had in common, are taken out: only what is left tells
candidates apart. One whose runs vary three times as much is worth a ninth of another one, and its
runs hide from the search what the others' would show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from dsharness.measure.metric import Metric
from dsharness.model import Sample, Turn, TurnState
from dssearch.bayes.prior import Belief

TIMES = 3.0  # by which the deviation has to be larger than on the calmest machine
CHANCE = 1e-4  # at most, that machines alike differ so
FEWEST = 4  # independent differences on each


@dataclass(frozen=True, kw_only=True)
class RunNoise:
    """What is left of runs, as logarithms."""

    squares: float = 0.0
    freedom: int = 0  # how many differences are independent

    def __add__(self, other: RunNoise) -> RunNoise:
        return RunNoise(squares=self.squares + other.squares, freedom=self.freedom + other.freedom)

    @property
    def deviation(self) -> float:
        return math.sqrt(self.squares / self.freedom) if self.freedom else 0.0

    def exceeds(self, calmest: RunNoise) -> bool:
        """Return whether it is larger by more than chance, and by enough to matter."""
        if min(self.freedom, calmest.freedom) < FEWEST:
            return False
        ratio = (self.deviation / max(calmest.deviation, Belief.least_noise)) ** 2
        return bool(ratio >= TIMES**2 and fdtrc(self.freedom, calmest.freedom, ratio) <= CHANCE)


def run_noise(
    turns: Iterable[Turn], samples: Iterable[Sample], metric: Metric
) -> dict[str, RunNoise]:
    """Return the noise by machine, from one campaign's turns that ended."""
    turns_done = {
        (turn.number, turn.attempt): turn for turn in turns if turn.state is TurnState.DONE
    }
    runs: dict[str, list[tuple[int, str, float]]] = {}
    for sample in samples:
        turn = turns_done.get((sample.turn, sample.attempt))
        value = metric.slowness(sample) if sample.valid else None
        if turn is not None and value:
            run = (turn.number, sample.candidate_id, math.log(value))
            runs.setdefault(turn.machine, []).append(run)
    return {machine: _left(machine_runs) for machine, machine_runs in runs.items()}


def _left(runs: Sequence[tuple[int, str, float]]) -> RunNoise:
    """Return what a speed of each turn and a level of each candidate do not explain."""
    turns, candidates, values = zip(*runs, strict=True)
    names, owner = np.unique(candidates, return_inverse=True)
    places = np.unique(turns, return_inverse=True)[1]
    columns = np.column_stack([np.eye(len(names))[owner], values])
    sizes = np.bincount(places)
    sums = np.stack([np.bincount(places, weights=column) for column in columns.T], axis=1)
    centred = columns - (sums / sizes[:, None])[places]
    levels, _, rank, _ = np.linalg.lstsq(centred[:, :-1], centred[:, -1], rcond=None)
    deviations = centred[:, -1] - centred[:, :-1] @ levels
    freedom = len(values) - len(sizes) - int(rank)
    return RunNoise(
        squares=float(deviations @ deviations) if freedom > 0 else 0.0, freedom=max(0, freedom)
    )


def noisier(noises: Mapping[str, RunNoise], names: Mapping[str, str]) -> dict[str, str]:
    """Return machines whose runs vary too much, by id, with the reason; ``names`` is for people."""
    telling = {machine: noise for machine, noise in noises.items() if noise.freedom >= FEWEST}
    if not telling:
        return {}
    calmest = min(telling, key=lambda machine: telling[machine].deviation)
    least = f"those of {names.get(calmest, calmest)} by {_percent(telling[calmest])}"
    return {
        machine: f"its runs of one candidate vary by {_percent(noise)}, {least}"
        for machine, noise in telling.items()
        if noise.exceeds(telling[calmest])
    }


def _percent(noise: RunNoise) -> str:
    return f"{100 * math.expm1(noise.deviation):.2g} %"
