"""All searches that are compared, by the names the tables show.

Parts of the search can be left out, to see what each is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from dsbisect.search_options import SearchOptions
from dssearch.bayes import likelihood, posterior
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty
from dssearch.bayes.prior import Belief, Budget, Costs, scatters
from searchbench import bounds, peers
from searchbench.driver import drive, line_of
from searchbench.findings import Finding
from searchbench.machine import Machine
from searchbench.worlds import World

# Where the posterior asks for the part, and what it gets instead.
PARTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "two modes": ("slow_mode", lambda *_: None),
    "ramps": ("ramp_masses", lambda positions: 0.0 * likelihood.ramp_masses(positions)),
    "machine speed": ("without_speed", lambda evidence, _: evidence),
    "disturbance": ("widened", lambda evidence: evidence),
}


@contextmanager
def left_out(part: str) -> Iterator[None]:
    """The search does without it inside the block."""
    name, instead = PARTS[part]
    with patch.object(posterior, name, instead):
        yield


# One setting for all cells. A build costs less than three runs: a neighbour's build is mostly
# there (docs/builds.md), and a run is what `--duration` makes it.
COSTS = Costs(run_s=15.0, start_s=0.0, prepare_s=40.0)

DUET_COSTS = replace(COSTS, run_s=COSTS.run_s / 2, paired=True)

OURS = "dsbisect"
OURS_SCATTER = "dsbisect --scatter"  # told by how much builds differ
OURS_ALL = "dsbisect --all"  # goes on after the first step
OURS_SMALLEST = "dsbisect --smallest 5"
OURS_EXPECTED = "dsbisect --expected 15"
OURS_TOLD = "dsbisect, told noise and d"
PLAIN, FIXED, ASV = "plain bisection", "fixed k", "asv find"
PINPOINT, PINPOINT_TOLD = "Pinpoint", "Pinpoint, told d"
FACF, GIT_BAYESECT = "FACF", "git_bayesect"
ORACLE, ORACLE_FRUGAL = "oracle", "oracle, 9 builds"
CLAIRVOYANT = "clairvoyant, only proving it"
WITHOUT = {part: f"dsbisect without {part}" for part in PARTS}


@dataclass(kw_only=True)
class Stopwatch:
    """Seconds of thought for each step, where a search takes steps."""

    step_s: list[float] = field(default_factory=list)


Method = Callable[[World, Machine, Stopwatch], Finding]


def _ours(world: World, machine: Machine, watch: Stopwatch) -> Finding:
    prior = {}
    if world.prior is not None:
        prior = dict(zip(line_of(world.n), world.prior.tolist(), strict=True))
    return drive(Bayes(**_given(world), prior=prior), machine, watch.step_s)


def _given(world: World) -> dict[str, Any]:
    """What the lab tells every search."""
    costs = DUET_COSTS if world.kind.duets else COSTS
    return {"costs": costs, "budget": Budget(runs=world.kind.budget)}


def _ours_scatter(world: World, machine: Machine, watch: Stopwatch) -> Finding:
    belief = SearchOptions(scatter_pct=world.kind.scatter_pct).belief(Belief())
    return drive(Bayes(**_given(world), belief=belief), machine, watch.step_s)


def _with(options: SearchOptions) -> Method:
    certainty = Certainty(smallest=options.smallest_log, expected=options.expected_log)
    belief = options.belief(Belief())

    def method(world: World, machine: Machine, watch: Stopwatch) -> Finding:
        search = Bayes(**_given(world), belief=belief, certainty=certainty)
        return drive(search, machine, watch.step_s)

    return method


def _ours_all(world: World, machine: Machine, watch: Stopwatch) -> Finding:
    belief = SearchOptions(every=True).belief(Belief())
    search = Bayes(**_given(world), belief=belief, certainty=Certainty(every=True))
    return drive(search, machine, watch.step_s)


def _without(part: str) -> Method:
    def method(world: World, machine: Machine, watch: Stopwatch) -> Finding:
        with left_out(part):
            return _ours(world, machine, watch)

    return method


def _ours_told(world: World, machine: Machine, watch: Stopwatch) -> Finding:
    """Neither the level nor whether there is a step: what that costs is what is left."""
    belief = Belief(
        noise=max(world.sigma, 1e-9),
        noise_doubt=0.05,
        scatters=scatters((0.002, 1.0)),
        tails=(100.0,),
        smallest_effect=math.exp(0.9 * world.size),
        largest_effect=math.exp(1.1 * world.size),
        least_in_noise=0.0,
    )
    return drive(Bayes(**_given(world), belief=belief), machine, watch.step_s)


def _untimed(peer: Callable[[World, Machine], Finding]) -> Method:
    return lambda world, machine, _: peer(world, machine)


METHODS: dict[str, Method] = {
    OURS: _ours,
    OURS_SCATTER: _ours_scatter,
    OURS_ALL: _ours_all,
    OURS_SMALLEST: _with(SearchOptions(smallest_pct=5.0)),
    OURS_EXPECTED: _with(SearchOptions(expected_pct=15.0)),
    OURS_TOLD: _ours_told,
    PLAIN: _untimed(peers.plain),
    FIXED: _untimed(peers.fixed),
    ASV: _untimed(peers.asv_find),
    PINPOINT: _untimed(peers.by_default),
    PINPOINT_TOLD: _untimed(peers.told_the_size),
    FACF: _untimed(peers.facf),
    GIT_BAYESECT: _untimed(peers.git_bayesect),
    ORACLE: _untimed(bounds.free),
    ORACLE_FRUGAL: _untimed(bounds.frugal),
    CLAIRVOYANT: _untimed(bounds.prove),
    **{name: _without(part) for part, name in WITHOUT.items()},
}
