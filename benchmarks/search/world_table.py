"""The tables of what machines and compilers really do: what was claimed, and how true it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.search.findings import Said
from benchmarks.search.play import Play
from benchmarks.search.score import CLAIMS, coverage, score, stated

HEAD = (
    "search",
    "right, or cannot tell",
    "cannot tell",
    "stated: true",
    "suspects hold it",
    "effect holds it",
    "runs",
    "builds",
    "said",
)
NOTHING = "-"


def world_rows(plays: Mapping[str, Sequence[Play]]) -> list[list[str]]:
    return [[method, *_row(found)] for method, found in plays.items()]


def said_text(said: Mapping[str, float]) -> str:
    """What was said at all, the most frequent first."""
    known = sorted(((share, word) for word, share in said.items() if share), reverse=True)
    return ", ".join(f"{word} {share:.2f}" for share, word in known)


def _row(plays: Sequence[Play]) -> list[str]:
    found = score(plays)
    return [
        f"{found.fair:.3f} ± {found.fair_error:.3f}",
        f"{found.said[Said.UNDECIDED]:.3f}",
        _stated(plays),
        _held([each.covers for each in plays]),
        _held([each.effect_holds for each in plays]),
        f"{found.runs:.1f} ± {found.runs_error:.1f}",
        f"{found.builds:.1f}",
        said_text(found.said),
    ]


def _stated(plays: Sequence[Play]) -> str:
    found = stated(plays, CLAIMS)
    if found is None:
        return NOTHING
    return f"{found.stated:.3f}: {found.true:.3f} ± {found.error:.3f}"


def _held(held: Sequence[bool | None]) -> str:
    found = coverage(held)
    if found is None:
        return NOTHING
    count, share, error = found
    return f"{share:.3f} ± {error:.3f} of {count}"
