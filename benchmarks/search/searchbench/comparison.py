"""Two variants of the search in the same histories: the paired differences."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TypedDict

from searchbench.cell import Cell
from searchbench.findings import Said
from searchbench.kinds import Kind
from searchbench.play import Play
from searchbench.plays import Plays

UNDECIDED = frozenset({Said.UNDECIDED, Said.STOPPED})
HEAD = ("cell", "search", "histories", "runs", "runs less", "builds less", "right more")
FAMILY_HEAD = (
    "family",
    "search",
    "histories",
    "median runs",
    "mean runs",
    "runs less",
    "right more",
    "wrong more",
    "cannot tell more",
    "found more",
)
Pairs = list[tuple["OldPlay", Play]]


class OldPlay(TypedDict):
    """What is used of a play that was stored."""

    seed: int
    runs: int
    builds: int
    right: bool
    said: str
    one: bool
    wrong: str


class OldCell(TypedDict):
    kind: Mapping[str, object]
    search: str
    plays: list[OldPlay]


Old = dict[tuple[str, str], dict[int, OldPlay]]


def read_old(path: Path) -> Old:
    """What ``--json`` wrote."""
    cells: list[OldCell] = json.loads(path.read_text())["cells"]
    return {
        (_name(cell["kind"]), cell["search"]): {play["seed"]: play for play in cell["plays"]}
        for cell in cells
    }


def differences(plays: Plays, old: Old) -> Iterator[list[str]]:
    """A row for each cell that both have played; old minus new, with its standard error."""
    for (cell, method), new_plays in plays.items():
        pairs = _pairs(cell, method, new_plays, old)
        if len(pairs) > 1:
            yield [
                cell.label,
                method,
                str(len(pairs)),
                _means(pairs),
                _paired([a["runs"] - b.runs for a, b in pairs]),
                _paired([a["builds"] - b.builds for a, b in pairs]),
                _paired([100 * (b.right - a["right"]) for a, b in pairs]) + " points",
            ]


def family_differences(plays: Plays, old: Old) -> Iterator[list[str]]:
    """A row for each family that both have played, in points of a hundred histories."""
    families: dict[tuple[str, str], Pairs] = {}
    for (cell, method), new_plays in plays.items():
        pairs = families.setdefault((cell.group, method), [])
        pairs += _pairs(cell, method, new_plays, old)
    for (family, method), pairs in families.items():
        if len(pairs) < 2:
            continue
        wrong = [(bool(a["wrong"]), bool(b.wrong)) for a, b in pairs]
        unsure = [(a["said"] in UNDECIDED, b.undecided) for a, b in pairs]
        right = [
            (not any(before), not any(after))
            for before, after in (
                ((w[0], u[0]), (w[1], u[1])) for w, u in zip(wrong, unsure, strict=True)
            )
        ]
        yield [
            family,
            method,
            str(len(pairs)),
            f"{median(a['runs'] for a, _ in pairs):.0f} to {median(b.runs for _, b in pairs):.0f}",
            _means(pairs),
            _paired([a["runs"] - b.runs for a, b in pairs]),
            *(_points(hits) for hits in (right, wrong, unsure)),
            _points([(a["one"], b.one) for a, b in pairs]),
        ]


def _pairs(cell: Cell, method: str, new_plays: Sequence[Play], old: Old) -> Pairs:
    old_plays = old.get((_name(_facts(cell.kind)), method), {})
    return [(old_plays[play.seed], play) for play in new_plays if play.seed in old_plays]


def _means(pairs: Pairs) -> str:
    before, after = fmean(old["runs"] for old, _ in pairs), fmean(new.runs for _, new in pairs)
    return f"{before:.1f} to {after:.1f}"


def _points(hits: Sequence[tuple[bool, bool]]) -> str:
    return _paired([100 * (after - before) for before, after in hits])


def _paired(values: Sequence[int]) -> str:
    return f"{fmean(values):+.2f} ± {stdev(values) / math.sqrt(len(values)):.2f}"


def _facts(kind: Kind) -> Mapping[str, object]:
    """As JSON gives it back."""
    facts: Mapping[str, object] = json.loads(json.dumps(asdict(kind)))
    return facts


USUAL = json.loads(json.dumps(asdict(Kind())))


def _name(kind: Mapping[str, object]) -> str:
    """What is as usual is left out: plays stay known when kinds get a new field."""
    unusual = {name: value for name, value in kind.items() if value != USUAL.get(name)}
    return json.dumps(unusual, sort_keys=True)
