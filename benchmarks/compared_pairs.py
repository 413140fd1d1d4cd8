"""How often `compare` names a difference that is none, and how many runs each load takes.

Runs are made up: the noise of a run is Gaussian or has strays, the machine's speed walks from turn
to turn, and the second row costs so many times as much. `make bench-compare` prints the table.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from worlds import World, sample_of

from dsbisect.compare_study import pair_search
from dsbisect.comparison_question import Compare
from dsharness.matrix import load_matrix
from dsharness.model import Boundary, Sample
from dsproducts import assemble

assemble()

LOOKS = 20  # loads and metrics of a directory's suite
NOISES, TIMES = (0.015, 0.03, 0.06), (1.0, 1.05, 1.1, 1.3)
WALK, STRAY_CHANCE = 0.05, 0.05


@dataclass
class StrayWorld(World):
    """Its machine's speed walks, and one run in twenty is 10 to 40 % slower."""

    def sample(self, row: str, turn: int) -> Sample:
        chance = random.Random(f"{self.seed}/{row}/{turn}")
        speed = random.Random(f"{self.seed}/{turn}").lognormvariate(0, WALK)
        cost = self.costs[row] * speed * chance.lognormvariate(0, self.noise)
        stray = chance.uniform(1.1, 1.4) if chance.random() < STRAY_CHANCE else 1.0
        return sample_of(row, cost * stray, turn)


def told(noise: float, times: float, seed: int) -> tuple[Boundary, int]:
    """Return the answer for one load of made-up runs, and how many they were."""
    load = load_matrix(folder=False).workloads[0]
    search = pair_search(Compare(first="a", second="b"), load, LOOKS, paired=True)
    world = (World, StrayWorld)[seed % 2]({"a": 1.0, "b": times}, noise=noise, seed=seed)
    boundary = world.search(search)
    return boundary, len(world.taken)


def line_of(noise: float, times: float, number: int) -> str:
    answers = [told(noise, times, seed) for seed in range(number)]
    named = [boundary for boundary, _ in answers if boundary.found]
    open_ = sum(boundary.direction == "unknown" for boundary, _ in answers)
    held = sum(
        boundary.effect_interval is not None
        and boundary.effect_interval[0] <= times <= boundary.effect_interval[1]
        for boundary in named
    )
    runs = [count for _, count in answers]
    figures = (number, len(named), open_, held, f"{statistics.median(runs):g}", max(runs))
    return " | ".join(map(str, (f"{noise:.1%}", f"{times:g}", *figures)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=40, help="of loads in each line")
    number = parser.parse_args().number
    print("noise | times | loads | named | not known | intervals hold | runs, median | most")
    for noise in NOISES:
        for times in TIMES:
            print(line_of(noise, times, number), flush=True)


if __name__ == "__main__":
    main()
