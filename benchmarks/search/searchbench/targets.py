"""What the search is held to where its world is as it expects; honesty.py asks it in others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from searchbench.kinds import Kind, Noise, Truth
from searchbench.large import Large
from searchbench.methods import OURS, PLAIN
from searchbench.peer_scenarios import MAIN
from searchbench.play import Play
from searchbench.plays import Plays, find
from searchbench.score import coverage, score, stated
from searchbench.target import Target, at_least, at_most
from searchbench.world_scenarios import MACHINES

LEVEL = 0.95
TRUE = "it is named, or lies below what could have been seen"
SIZES = (1.0, 2.0, 4.0)
MOST_RUNS = {1.0: 187.4, 2.0: 42.0, 4.0: 17.2}  # 5 % more than before each start had an offset
OVER_BETTER = 2.0  # 5 % and 8 % in turns tell 1.44 times less than 5 % alone; offsets cost more
MOST_OFF = 0.02
NONE_SHARE = 0.985
MOST_MS, MOST_MB = 50, 200


def targets(plays: Plays, large: Large | None) -> list[Target]:
    """Of the cells that were played."""
    return [
        *(each for d in SIZES for each in _one_step(plays, d)),
        *_calibrated(plays),
        *_truths(plays),
        *machines(plays),
        *(_large(large) if large else ()),
        *_silent(plays),
    ]


def _one_step(plays: Plays, d: float) -> Iterator[Target]:
    ours = find(plays, Kind(d=d))
    if not ours:
        return
    found, where = score(ours), f"one step, n = 128, d = {d:g}"
    known = coverage(each.right or bool(each.none_holds) for each in ours)
    if known is not None:
        _, share, error = known
        yield at_least(f"{where}: {TRUE}", share, error, LEVEL)
    yield at_most(f"{where}: runs", found.runs, found.runs_error, MOST_RUNS[d])


def _calibrated(plays: Plays) -> Iterator[Target]:
    """Over all of the main table that a target names, and then for each d of it."""
    main = [
        (cell, found)
        for (cell, method), found in plays.items()
        if method == OURS and cell.group == MAIN and cell.kind.d in SIZES
    ]
    yield from named_true("one step, n = 128, d = 1, 2, 4", [each for _, f in main for each in f])
    for cell, found in main:
        yield from named_true(f"one step, n = 128, d = {cell.kind.d:g}", found)
    known = coverage(each.covers for _, found in main for each in found)
    if known is not None:
        count, share, error = known
        yield at_least(f"suspects hold the step ({count} answers)", share, error, LEVEL)


def named_true(where: str, plays: Sequence[Play]) -> Iterator[Target]:
    """That what is named is as often true as it is stated; nothing where nothing is named."""
    found = stated(plays)
    if found is not None:
        yield Target(
            what=f"{where}: what is named is true",
            wanted=f"at most {100 * MOST_OFF:.0f} points below what is stated",
            measured=f"stated {found.stated:.1%}, true {found.true:.1%} ± {found.error:.1%}",
            met=found.true >= found.stated - MOST_OFF,
        )


def _truths(plays: Plays) -> Iterator[Target]:
    nothing = find(plays, Kind(truth=Truth.NONE))
    if nothing:
        none = score(nothing)
        yield at_least("no step, n = 128: recognised", none.right, none.right_error, NONE_SHARE)


def machines(plays: Plays) -> Iterator[Target]:
    """Both against the better one alone."""
    found = {
        cell.kind.second_machine: score(made)
        for (cell, method), made in plays.items()
        if method == OURS and cell.group == MACHINES and cell.kind.truth is Truth.STEP
    }
    if len(found) < 2:
        return
    both, better = found[True], found[False]
    yield at_most(
        f"two machines: runs, {OVER_BETTER:g} times those of the better one alone",
        both.runs,
        both.runs_error,
        OVER_BETTER * better.runs,
    )


def _large(large: Large) -> Iterator[Target]:
    yield Target(
        what="n = 100,000: next step",
        wanted=f"within {MOST_MS} ms in the median",
        measured=f"median {large.median_ms:.1f} ms, slowest "
        f"{max(large.slowest_ms, large.first_ms):.1f} ms",
        met=large.median_ms <= MOST_MS,
    )
    yield Target(
        what="n = 100,000: memory",
        wanted=f"at most {MOST_MB} MB",
        measured=f"{large.resident_mb:.0f} MB, the whole process; "
        f"{large.empty_mb:.0f} MB of it before the search",
        met=large.resident_mb <= MOST_MB,
    )


def _silent(plays: Plays) -> Iterator[Target]:
    """World by world: a mean would hide the worst."""
    for (cell, method), found in plays.items():
        if method != OURS or cell.kind.noise is not Noise.NIL:
            continue
        peer = find(plays, cell.kind, PLAIN) or []
        more = [a.builds - b.builds for a, b in zip(found, peer, strict=True)]
        mine, theirs = score(found), score(peer)
        yield Target(
            what=f"no noise, n = {cell.kind.n:,}: builds compared with plain bisection",
            wanted="never more",
            measured=f"more in {sum(each > 0 for each in more)} of {len(found)} worlds, at most "
            f"{max(more)}; mean {mine.builds:.2f} and {theirs.builds:.2f}",
            met=max(more) <= 0,
        )
