"""Whether building ahead ever costs time: the same search without it, with right and wrong guesses.

    make bench-builds BENCH=--ahead       about five minutes

The builds are of small trees that burn CPU time; what else a search does is imitated: the directory
that is made of each build (CPU time on every core), and the samples (time in which nothing else may
run). Each way is taken in turn with the others, so that a busy machine is busy for all.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from small_trees import small_tree

from dsbisect.lab.builds_ahead import Ahead
from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.toolchains.needs import needs_of
from dsbuilds.toolchains.toolchain_choice import named
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.machine.host import available_cpus
from dsharness.matrix import load_matrix

ROOT = Path(__file__).parents[1]
WAYS = ("without", "right guesses", "wrong guesses")
TURNS = 3
SAMPLES, SAMPLE_S, BETWEEN_S = 3, 3.0, 0.5
BURN = "for one in 1 2; do (i=0; while [ $$i -lt 700000 ]; do i=$$((i + 1)); done) & done; wait"
ROUNDS = 1_000_000  # of hashing on each CPU: the users' passwords of a new directory


@dataclass
class Spent:
    """Seconds of one way, by what they went for."""

    building: float = 0.0
    creating: float = 0.0
    measuring: float = 0.0

    @property
    def whole(self) -> float:
        return self.building + self.creating + self.measuring


@dataclass
class Search:
    """Some turns of a search, each of a candidate that was not built before."""

    engine: Engine
    toolset: ToolchainImage
    folder: Path
    pool: ProcessPoolExecutor
    spent: Spent = field(default_factory=Spent)

    def build(self, name: str) -> None:
        tree = small_tree(self.folder / name, f": {self.folder.name} {name}", BURN)
        order = TreeOrder(tree=tree, needs=needs_of(tree.read), toolset=self.toolset)
        build_tree(self.engine, order, progress=lambda _: None)

    def run(self, way: str) -> Spent:
        self.build("before")  # the folder is there, and configured
        ahead = Ahead(self.build)
        try:
            for turn in range(TURNS):
                self.turn(ahead, turn, way)
        finally:
            ahead.close()
        return self.spent

    def turn(self, ahead: Ahead, number: int, way: str) -> None:
        name = f"turn-{number}"
        ahead.make_room(name)
        self.spent.building += timed(lambda: self.build(name))
        guesses = {"right guesses": [f"turn-{number + 1}"], "wrong guesses": [f"never-{number}"]}
        ahead.want(guesses.get(way, []))
        self.spent.creating += timed(lambda: list(self.pool.map(hashed, available_cpus())))
        self.spent.measuring += timed(lambda: measure(ahead))


def measure(ahead: Ahead) -> None:
    for _ in range(SAMPLES):
        with ahead.quiet():
            time.sleep(SAMPLE_S)
        time.sleep(BETWEEN_S)


def hashed(_: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", b"password", b"salt", ROUNDS)


def timed(job: Callable[[], object]) -> float:
    begun = time.monotonic()
    job()
    return time.monotonic() - begun


def compare(rounds: int) -> dict[str, list[Spent]]:
    engine, matrix = detect(), load_matrix(ROOT / "matrix.yaml")
    toolset = toolset_of(
        engine, matrix, named("debian-13", matrix.toolchains), progress=lambda _: None
    )
    found: dict[str, list[Spent]] = {way: [] for way in WAYS}
    with ExitStack() as resources:
        pool = resources.enter_context(ProcessPoolExecutor())
        for _ in range(rounds):
            for way in WAYS:
                folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
                search = Search(engine=engine, toolset=toolset, folder=folder, pool=pool)
                found[way].append(search.run(way))
                print(f"{way}: {search.spent.whole:.0f} s", file=sys.stderr)
    return found


def lines(found: dict[str, list[Spent]]) -> list[str]:
    """A table: seconds a turn of each way, and of the whole what it is of that without."""
    without = mean(each.whole for each in found["without"])
    head = f"{'building ahead':16}{'building':>10}{'creating':>10}{'measuring':>11}{'a turn':>9}"
    said = [f"{head}   of that without"]
    for way, all_spent in found.items():
        parts = (
            mean(getattr(each, name) for each in all_spent) / TURNS
            for name in ("building", "creating", "measuring", "whole")
        )
        building, creating, measuring, whole = parts
        share = whole * TURNS / without
        said.append(
            f"{way:16}{building:8.1f} s{creating:8.1f} s{measuring:9.1f} s{whole:7.1f} s   "
            f"{100 * share:.0f} %"
        )
    return said
