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
TRUE = "named, or below what could be seen"
SIZES = (1.0, 2.0, 4.0)
MOST_RUNS = {1.0: 187.4, 2.0: 42.0, 4.0: 17.2}  # 5 % more than before each start had an offset
OVER_BETTER = 2.0  # 5 % and 8 % in turns tell 1.44 times less than 5 % alone; offsets cost more
MOST_OFF = 0.02
NONE_SHARE = 0.985
MOST_MS, MOST_MB = 50, 200


def targets(plays: Plays, large: Large | None) -> list[Target]:
    """Of the cells that were played."""
    return [
        *(target for d in SIZES for target in _one_step(plays, d)),
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
    cell_score, where = score(ours), f"d = {d:g}"
    shares = coverage(play.right or bool(play.none_holds) for play in ours)
    if shares is not None:
        _, share, error = shares
        yield at_least(f"{where}: {TRUE}", share, error, LEVEL)
    yield at_most(f"{where}: runs", cell_score.runs, cell_score.runs_error, MOST_RUNS[d])


def _calibrated(plays: Plays) -> Iterator[Target]:
    """Over all of the main table that a target names, and then for each d of it."""
    main = [
        (cell, cell_plays)
        for (cell, method), cell_plays in plays.items()
        if method == OURS and cell.group == MAIN and cell.kind.d in SIZES
    ]
    yield from named_true("d = 1, 2, 4", [play for _, f in main for play in f])
    for cell, cell_plays in main:
        yield from named_true(f"d = {cell.kind.d:g}", cell_plays)
    shares = coverage(play.covers for _, cell_plays in main for play in cell_plays)
    if shares is not None:
        count, share, error = shares
        yield at_least(f"suspects hold the step ({count} answers)", share, error, LEVEL)


def named_true(where: str, plays: Sequence[Play]) -> Iterator[Target]:
    """That what is named is as often true as it is stated; nothing where nothing is named."""
    claims = stated(plays)
    if claims is not None:
        yield Target(
            what=f"{where}: what is named is true",
            wanted=f"stated less {100 * MOST_OFF:.0f} points",
            measured=f"stated {claims.stated:.1%}, true {claims.true:.1%} ± {claims.error:.1%}",
            met=claims.true >= claims.stated - MOST_OFF,
        )


def _truths(plays: Plays) -> Iterator[Target]:
    nothing = find(plays, Kind(truth=Truth.NONE))
    if nothing:
        none = score(nothing)
        yield at_least("no step: recognised", none.right, none.right_error, NONE_SHARE)


def machines(plays: Plays) -> Iterator[Target]:
    """Both against the better one alone."""
    scores = {
        cell.kind.second_machine: score(cell_plays)
        for (cell, method), cell_plays in plays.items()
        if method == OURS and cell.group == MACHINES and cell.kind.truth is Truth.STEP
    }
    if len(scores) < 2:
        return
    two_machines, better = scores[True], scores[False]
    yield at_most(
        f"two machines: runs, {OVER_BETTER:g} times those of the better one alone",
        two_machines.runs,
        two_machines.runs_error,
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
    for (cell, method), our_plays in plays.items():
        if method != OURS or cell.kind.noise is not Noise.NIL:
            continue
        peer = find(plays, cell.kind, PLAIN) or []
        more = [a.builds - b.builds for a, b in zip(our_plays, peer, strict=True)]
        mine, theirs = score(our_plays), score(peer)
        yield Target(
            what=f"no noise, n = {cell.kind.n:,}: builds, to plain bisection",
            wanted="never more",
            measured=f"more in {sum(excess > 0 for excess in more)} of {len(our_plays)} worlds, "
            f"at most {max(more)}; mean {mine.builds:.2f} and {theirs.builds:.2f}",
            met=max(more) <= 0,
        )
