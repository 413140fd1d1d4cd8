"""The next step: the most bits about the step per second. Core pure logic, no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dssearch.bayes.belief import Beliefs
from dssearch.bayes.gap_split import Split
from dssearch.bayes.information_gain import BATCHES, bits
from dssearch.bayes.prior import Budget, Costs
from dssearch.bayes.track import Floats

MANY = 4  # runs of one candidate: then those of another come between them
CANARY = 16  # runs after which an end is measured again in any case
MANY_BUILDS = 5  # times those of plain halving
LEAST_BITS = 1e-6
IDLE_BITS = 1e-4  # where no step is likely anyway
SETTLED_BITS = 1e-3  # a run, once nothing is left to build: a thousand would settle one question


@dataclass(frozen=True, kw_only=True)
class NextRun:
    """Measure ``candidate``; ``reference`` shares its turn if the machine's speed changes."""

    candidate: str
    reference: str | None
    gain: float  # bits per run
    why: str


def choose(
    beliefs: Beliefs,
    costs: Costs,
    budget: Budget,
    *,
    every: bool = False,
    under_way: frozenset[str] = frozenset(),
) -> NextRun | None:
    """None if no run would tell more than what is under way."""
    options = list(_options(beliefs, budget))
    gains = bits(beliefs.posterior, options, every=every)
    gains[[_name(beliefs, option) in under_way for option in options]] = 0.0
    first = np.array([_first_s(beliefs, costs, option) for option in options])
    seconds = first[:, None] + np.array(BATCHES)[None, :] * costs.run_s
    worth = gains / seconds
    best, batch = np.unravel_index(int(np.argmax(worth)), worth.shape)
    least = IDLE_BITS if beliefs.posterior.none > 0.5 else LEAST_BITS
    if gains[best, batch] < least:
        return None
    option = options[int(best)]
    with_reference = costs.paired or BATCHES[int(batch)] >= MANY or shared(beliefs)
    rate = float(gains[best, batch]) / BATCHES[int(batch)]
    built = not any(isinstance(each, Split) for each in options)
    if built and rate < SETTLED_BITS and beliefs.posterior.none < 0.5:
        return None
    return NextRun(
        candidate=_name(beliefs, option),
        reference=_reference(beliefs, option, options, worth) if with_reference else None,
        gain=rate,
        why=_why(beliefs, option, rate),
    )


def most_builds(beliefs: Beliefs) -> float:
    """So many settle a line, unless its builds differ by themselves."""
    return MANY_BUILDS * math.log2(len(beliefs.line.names))


def lost_in_builds(beliefs: Beliefs) -> str:
    """Why still more builds would not settle it, once there are many; else empty.

    Where builds of one source differ by more than the error of their runs, only the average over
    builds tells, and next to a step there may be none to average.
    """
    found = beliefs.posterior
    builds = len(found.seen.positions)
    if builds < most_builds(beliefs):
        return ""
    if found.scatter < found.noise * float(np.median(found.seen.errors)):
        return ""
    return (
        f"builds of one source differ by about {100 * math.expm1(found.scatter):.1f} % by "
        f"themselves, and {builds} builds did not settle it: several builds of each suspect "
        "would tell (`bisect commits` proves with them)"
    )


def canary_due(beliefs: Beliefs) -> bool:
    """Whether neither end was among the latest runs."""
    seen = beliefs.posterior.seen
    latest = seen.owner[-CANARY:]
    return len(latest) == CANARY and not bool(np.isin(latest, [0, len(seen.positions) - 1]).any())


def session_unknown(beliefs: Beliefs) -> bool:
    """Whether a session after the first has not measured both ends yet: its offset is not known."""
    seen = beliefs.posterior.seen
    here = seen.owner[seen.sessions == seen.sessions[-1]]
    return bool(seen.sessions[-1] > 0 and not np.isin([0, len(seen.positions) - 1], here).all())


def _options(beliefs: Beliefs, budget: Budget) -> Iterator[int | Split]:
    yield from range(len(beliefs.posterior.seen.positions))
    if budget.may_build(beliefs.history):
        for gap in range(beliefs.posterior.gaps):
            found = beliefs.split(gap)
            if found is not None:
                yield found


def _position(beliefs: Beliefs, option: int | Split) -> int:
    if isinstance(option, Split):
        return option.position
    return int(beliefs.posterior.seen.positions[option])


def _name(beliefs: Beliefs, option: int | Split) -> str:
    return beliefs.line.names[_position(beliefs, option)]


def _first_s(beliefs: Beliefs, costs: Costs, option: int | Split) -> float:
    return costs.first_s(_name(beliefs, option)) if isinstance(option, Split) else 0.0


def shared(beliefs: Beliefs) -> bool:
    """Whether a run says more in a turn with another: the machine's speed changes, or several."""
    seen = beliefs.posterior.seen
    return bool(np.any(seen.scales > 1)) or len(seen.doubts) > 1


def _reference(
    beliefs: Beliefs, option: int | Split, options: Sequence[int | Split], worth: Floats
) -> str:
    """The measured candidate, other than the one asked about, that tells most itself."""
    known = [at for at, other in enumerate(options) if isinstance(other, int) and other != option]
    best = max(known, key=lambda at: (float(worth[at].max()), -at))
    return _name(beliefs, options[best])


def _why(beliefs: Beliefs, option: int | Split, rate: float) -> str:
    name = _name(beliefs, option)
    if isinstance(option, Split):
        low, high = beliefs.posterior.ends(option.gap)
        names = beliefs.line.names
        chance = 100 * float(beliefs.posterior.stepped[option.gap])
        return (
            f"{name} halves {names[low]} to {names[high]}, which contain a step with "
            f"{chance:.0f} %: "
            f"{rate:.2f} bits a run"
        )
    return f"{name} again: {rate:.2f} bits a run"
