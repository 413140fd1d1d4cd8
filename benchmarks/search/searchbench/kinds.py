"""Which worlds are drawn: what is true in them, and what makes it hard to see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from dsharness.model import DECIDER

RAMP = 10  # candidates over which a ramp rises


class Truth(StrEnum):
    STEP = "one step"
    NONE = "no step"
    TWO = "two steps"
    BACK = "a step and back"
    DRIFT = "drift"
    RAMP = "a ramp"


class Noise(StrEnum):
    GAUSSIAN = "Gaussian"
    HEAVY = "heavy tails"
    BIMODAL = "bimodal"
    NIL = "nil"


class Hint(StrEnum):
    """What a prior says about the culprit."""

    NOTHING = "none"
    RIGHT = "right"
    WRONG = "wrong"
    RUN = "by functions right"  # what the load runs
    NOT_RUN = "by functions wrong"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A step is ``d`` times the noise of one run, unless its size is given."""

    n: int = 128
    d: float = 2.0
    step_pct: float | None = None  # of the first step, or of a whole ramp
    then_pct: float | None = None  # of the second step of "a step and back"; None: all the way
    then_share: float | None = None  # the same as a part of the first step: 1 takes it all back
    apart: tuple[int, int] | None = None  # so many candidates lie between both; None: any place
    either_way: bool = False  # in half of the worlds, what is slower is faster
    metric: str = DECIDER  # by which the search decides
    counts: tuple[float, float] | None = None  # of an operation, before the step and after it
    budget: int = 2000  # runs that the search may take
    proved: bool = False  # a small step is built again on both sides before it counts as named
    cv_pct: tuple[float, float] = (5.0, 20.0)  # of the cost of one run, drawn between these
    truth: Truth = Truth.STEP
    noise: Noise = Noise.GAUSSIAN
    slow_runs: bool = False  # 30 % of the runs are 25 % slower
    wanders: bool = False  # the machine's speed, by 30 %
    rate_cv_pct: float = 13.0  # of the rate of one run (docs/verdicts.md: 13 to 26 %)
    rate_wanders: bool = False  # by 15 % to both sides, and the cost does not
    scatter_pct: float = 0.0  # by which each build is faster or slower, whatever its source
    odd_pct: float = 0.0  # by which one candidate away from the step is slower, and no other
    layout_pct: tuple[float, float] = (0.0, 0.0)  # each build is so much faster, or slower
    one_layout: bool = False  # the step is in one of two layouts only
    start_pct: tuple[float, float] = (0.0, 0.0)  # by which 30 % of a server's starts are slower
    one_start: bool = False  # of a candidate, for all of its runs; else one for each turn
    fails_pct: tuple[float, float] = (0.0, 0.0)  # of the runs of a third of the candidates
    spells: bool = False  # three fail in a row, in the mean
    censored_pct: tuple[float, float] = (0.0, 0.0)  # of the slow side's runs: they take too long
    second_machine: bool = False  # turns alternate between two machines
    sessions: bool = False  # every 30 runs a new day, on which all is up to 6 % faster or slower
    stolen: bool = False  # neighbours take a fifth of the time of one run in five, which strays
    drifts: bool = False  # the machine's speed, by 0.1 % with each run
    duets: bool = False  # two run at once on a machine whose speed wanders by 3 % a turn
    gaps: bool = False  # stretches that cannot be built
    stored: bool = False  # runs of the first candidate are those of the night before
    night: int = 1  # as many commits came each night, the step in the first; all is measured again
    hint: Hint = Hint.NOTHING

    @property
    def label(self) -> str:
        return ", ".join(_words(self))


def _words(kind: Kind) -> Iterator[str]:
    yield f"n={kind.n}"
    if kind.step_pct is None:
        yield f"d={kind.d:g}"
    yield _history(kind)
    if kind.cv_pct[0] == kind.cv_pct[1]:
        yield f"CV {kind.cv_pct[0]:g} %"
    elif kind.cv_pct != Kind.cv_pct:
        yield f"CV {kind.cv_pct[0]:g} to {kind.cv_pct[1]:g} %"
    if kind.noise is not Noise.GAUSSIAN:
        yield f"noise {kind.noise}"
    flags = {
        "30 % of the runs 25 % slower": kind.slow_runs,
        "speed wanders 30 %": kind.wanders,
        f"rate CV {kind.rate_cv_pct:g} %": kind.rate_cv_pct != Kind.rate_cv_pct,
        "rate wanders 15 %": kind.rate_wanders,
        f"builds differ by {kind.scatter_pct:g} %": kind.scatter_pct > 0,
        "either way": kind.either_way,
        f"by {kind.metric}": kind.metric != DECIDER,
        f"at most {kind.budget} runs": kind.budget != Kind.budget,
        f"two layouts, {_range(kind.layout_pct)} to both sides": kind.layout_pct[1] > 0,
        "in one of two layouts": kind.one_layout,
        f"30 % of the starts {_range(kind.start_pct)} slower": kind.start_pct[1] > 0,
        "one start of each candidate": kind.one_start,
        f"a third fail in {_range(kind.fails_pct)} of their runs": kind.fails_pct[1] > 0,
        "three in a row": kind.spells,
        f"{_range(kind.censored_pct)} of the slow runs take too long": kind.censored_pct[1] > 0,
        f"one candidate {kind.odd_pct:g} % slower alone": kind.odd_pct > 0,
        "two machines": kind.second_machine,
        "a new day every 30 runs": kind.sessions,
        "one run in five loses 20 % to neighbours": kind.stolen,
        "drifts 0.1 % a run": kind.drifts,
        "duets, 3 % a turn": kind.duets,
        "unbuildable stretches": kind.gaps,
        "the first measured the night before": kind.stored,
        f"night {kind.night}": kind.night > 1,
        f"prior {kind.hint}": kind.hint is not Hint.NOTHING,
    }
    yield from (word for word, holds in flags.items() if holds)


def _range(pct: tuple[float, float]) -> str:
    return f"{pct[0]:g} to {pct[1]:g} %"


def _history(kind: Kind) -> str:
    if kind.counts is not None:
        return f"{kind.truth}, {kind.counts[0]:g} to {kind.counts[1]:g}"
    if kind.then_share is not None and kind.apart is not None:
        near = "{} to {}".format(*kind.apart)
        return f"{kind.truth}, {kind.then_share:g} of it, {near} candidates later"
    if kind.step_pct is None or kind.truth is Truth.NONE:
        return str(kind.truth)
    size = f"{kind.step_pct:+g} %"
    match kind.truth:
        case Truth.BACK:
            return f"{size} and back" if kind.then_pct is None else f"{size}, {kind.then_pct:+g} %"
        case Truth.RAMP:
            return f"a ramp of {size} over {RAMP} candidates"
        case _:
            return f"{kind.truth} of {size}"
