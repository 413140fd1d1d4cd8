"""All searches that are compared, by the names the tables show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from benchmarks.search import clairvoyant, oracle, peers_halving, peers_pinpoint, peers_votes
from benchmarks.search.driver import drive, line_of
from benchmarks.search.findings import Finding
from benchmarks.search.left_out import PARTS, left_out
from benchmarks.search.machine import Machine
from benchmarks.search.worlds import World
from dsbisect.search_options import SearchOptions
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty
from dssearch.bayes.prior import Belief, Costs

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
    costs = DUET_COSTS if world.kind.duets else COSTS
    return drive(Bayes(costs=costs, prior=prior), machine, watch.step_s)


def _ours_scatter(world: World, machine: Machine, watch: Stopwatch) -> Finding:
    belief = SearchOptions(scatter_pct=world.kind.scatter_pct).belief(Belief())
    return drive(Bayes(costs=COSTS, belief=belief), machine, watch.step_s)


def _with(options: SearchOptions) -> Method:
    certainty = Certainty(smallest=options.smallest_log, expected=options.expected_log)
    search = Bayes(costs=COSTS, belief=options.belief(Belief()), certainty=certainty)
    return lambda _, machine, watch: drive(search, machine, watch.step_s)


def _ours_all(_: World, machine: Machine, watch: Stopwatch) -> Finding:
    belief = SearchOptions(every=True).belief(Belief())
    search = Bayes(costs=COSTS, belief=belief, certainty=Certainty(every=True))
    return drive(search, machine, watch.step_s)


def _without(part: str) -> Method:
    def method(world: World, machine: Machine, watch: Stopwatch) -> Finding:
        with left_out(part):
            return _ours(world, machine, watch)

    return method


def _ours_told(world: World, machine: Machine, watch: Stopwatch) -> Finding:
    """Neither the level nor whether there is a step: what that costs is what is left."""
    told = Belief(
        noise=max(world.sigma, 1e-9),
        noise_doubt=0.05,
        scatters=((0.002, 1.0),),
        tails=(100.0,),
        smallest_effect=math.exp(0.9 * world.size),
        largest_effect=math.exp(1.1 * world.size),
        least_in_noise=0.0,
    )
    return drive(Bayes(costs=COSTS, belief=told), machine, watch.step_s)


def _untimed(peer: Callable[[World, Machine], Finding]) -> Method:
    return lambda world, machine, _: peer(world, machine)


METHODS: dict[str, Method] = {
    OURS: _ours,
    OURS_SCATTER: _ours_scatter,
    OURS_ALL: _ours_all,
    OURS_SMALLEST: _with(SearchOptions(smallest_pct=5.0)),
    OURS_EXPECTED: _with(SearchOptions(expected_pct=15.0)),
    OURS_TOLD: _ours_told,
    PLAIN: _untimed(peers_halving.plain),
    FIXED: _untimed(peers_halving.fixed),
    ASV: _untimed(peers_halving.asv_find),
    PINPOINT: _untimed(peers_pinpoint.by_default),
    PINPOINT_TOLD: _untimed(peers_pinpoint.told_the_size),
    FACF: _untimed(peers_votes.facf),
    GIT_BAYESECT: _untimed(peers_votes.git_bayesect),
    ORACLE: _untimed(oracle.free),
    ORACLE_FRUGAL: _untimed(oracle.frugal),
    CLAIRVOYANT: _untimed(clairvoyant.prove),
    **{name: _without(part) for part, name in WITHOUT.items()},
}
