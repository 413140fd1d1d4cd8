"""What the search is held to, what was measured, and whether that is met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.search.large import Large
from benchmarks.search.limits import expected_runs, fewest_runs
from benchmarks.search.methods import ORACLE, ORACLE_FRUGAL, OURS, OURS_TOLD, PLAIN
from benchmarks.search.playing import Play
from benchmarks.search.running import Plays
from benchmarks.search.scenarios import MAIN
from benchmarks.search.scoring import coverage, score, stated
from benchmarks.search.worlds import Kind, Noise, Truth

LEVEL = 0.95
MOST_RUNS = {1.0: 110, 2.0: 28, 4.0: 14}
MOST_BUILDS = 9
MOST_OFF = 0.02
NONE_SHARE = 0.985
TWO_SHARE = 0.95
MOST_MS, MOST_MB = 50, 200


@dataclass(frozen=True, kw_only=True)
class Target:
    what: str
    wanted: str
    measured: str
    met: bool
    near: bool = False  # within two standard errors of the target, on either side
    bound: str = ""  # what says that no search could

    @property
    def verdict(self) -> str:
        word = "met" if self.met else "not met"
        return f"{word}, within the error" if self.near else word


def targets(plays: Plays, large: Large) -> list[Target]:
    return [
        *(each for d in MOST_RUNS for each in _one_step(plays, d)),
        *_calibrated(plays),
        *_truths(plays),
        *_large(large),
        *_silent(plays),
    ]


def _of(plays: Plays, kind: Kind, method: str = OURS) -> list[Play]:
    return next(
        found for (cell, name), found in plays.items() if name == method and cell.kind == kind
    )


def _one_step(plays: Plays, d: float) -> Iterator[Target]:
    kind = Kind(d=d)
    found = score(_of(plays, kind))
    where = f"one step, n = 128, d = {d:g}"
    yield _share(f"{where}: accuracy", found.right, found.right_error, LEVEL)
    most = MOST_RUNS[d]
    told, free, frugal = (
        score(_of(plays, kind, name)) for name in (OURS_TOLD, ORACLE, ORACLE_FRUGAL)
    )
    yield Target(
        what=f"{where}: runs",
        wanted=f"at most {most}",
        measured=f"{found.runs:.1f} ± {found.runs_error:.1f}",
        met=found.runs <= most,
        near=abs(found.runs - most) <= 2 * found.runs_error,
        bound=f"the same search, told the noise and the size of the step, {told.runs:.1f}; "
        f"told both levels, and with every build for nothing, {free.runs:.1f} (oracle) and "
        f"with at most {MOST_BUILDS} builds {frugal.runs:.1f}; information limit "
        f"{fewest_runs(128, d, 1 - LEVEL):.1f}, with proof {expected_runs(128, d, 1 - LEVEL):.1f}",
    )
    yield Target(
        what=f"{where}: builds",
        wanted=f"at most {MOST_BUILDS}",
        measured=f"{found.builds:.2f}, at most {found.most_builds}",
        met=found.builds <= MOST_BUILDS,
        bound="both ends and log2 of 127 places are 9: fewer only with luck",
    )


def _calibrated(plays: Plays) -> Iterator[Target]:
    """Over all of the main table that a target names, and then for each d of it."""
    main = [
        (cell, found)
        for (cell, method), found in plays.items()
        if method == OURS and cell.group == MAIN and cell.kind.d in MOST_RUNS
    ]
    yield from _stated("one step, n = 128, d = 1, 2, 4", [each for _, f in main for each in f])
    for cell, found in main:
        yield from _stated(f"one step, n = 128, d = {cell.kind.d:g}", found)
    known = coverage(each for _, found in main for each in found)
    if known is not None:
        count, share, error = known
        yield _share(f"suspects hold the step ({count} answers)", share, error, LEVEL)


def _stated(where: str, plays: list[Play]) -> Iterator[Target]:
    found = stated(plays)
    if found is not None:
        yield Target(
            what=f"{where}: stated confidence is true",
            wanted=f"within {100 * MOST_OFF:.0f} points",
            measured=f"stated {found.stated:.1%}, true {found.true:.1%} ± {found.error:.1%}",
            met=found.off <= MOST_OFF,
            near=abs(found.off - MOST_OFF) <= 2 * found.error,
        )


def _truths(plays: Plays) -> Iterator[Target]:
    none = score(_of(plays, Kind(truth=Truth.NONE)))
    yield _share("no step, n = 128: recognised", none.right, none.right_error, NONE_SHARE)
    for d in MOST_RUNS:
        kind = Kind(truth=Truth.TWO, d=d)
        two, told = score(_of(plays, kind)), score(_of(plays, kind, OURS_TOLD))
        what = f"two steps, n = 128, d = {d:g}: one named, the other suspected"
        bound = (
            f"the search ends when one step is sure, after {two.runs:.0f} runs; one is named in "
            f"{two.one:.1%}, and told the noise and the size of the steps, both in {told.right:.1%}"
        )
        yield _share(what, two.right, two.right_error, TWO_SHARE, bound)


def _large(large: Large) -> Iterator[Target]:
    yield Target(
        what="n = 100,000: next step",
        wanted=f"within {MOST_MS} ms",
        measured=f"median {large.median_ms:.1f} ms, slowest "
        f"{max(large.slowest_ms, large.first_ms):.1f} ms",
        met=max(large.slowest_ms, large.first_ms) <= MOST_MS,
    )
    yield Target(
        what="n = 100,000: memory",
        wanted=f"at most {MOST_MB} MB",
        measured=f"{large.resident_mb:.0f} MB, the whole process; "
        f"{large.empty_mb:.0f} MB of it before the search",
        met=large.resident_mb <= MOST_MB,
    )


def _silent(plays: Plays) -> Iterator[Target]:
    """World by world, since the target says never."""
    for (cell, method), found in plays.items():
        if method != OURS or cell.kind.noise is not Noise.NIL:
            continue
        peer = _of(plays, cell.kind, PLAIN)
        worse = sum(a.builds > b.builds for a, b in zip(found, peer, strict=True))
        mine, theirs = score(found), score(peer)
        yield Target(
            what=f"no noise, n = {cell.kind.n:,}: builds compared with plain bisection",
            wanted="never more",
            measured=f"more in {worse} of {len(found)} worlds; mean {mine.builds:.2f} and "
            f"{theirs.builds:.2f}, most {mine.most_builds} and {theirs.most_builds}",
            met=worse == 0,
        )


def _share(what: str, share: float, error: float, least: float, bound: str = "") -> Target:
    return Target(
        what=what,
        wanted=f"at least {least:.1%}",
        measured=f"{share:.1%} ± {error:.1%}",
        met=share >= least,
        near=abs(share - least) <= 2 * error,
        bound=bound,
    )
