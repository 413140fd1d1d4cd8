"""Two variants of the search in the same histories: the paired differences."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import TypedDict

from searchbench.kinds import Kind
from searchbench.play import Play
from searchbench.plays import Plays

HEAD = ("cell", "search", "histories", "runs", "runs less", "builds less", "right more")


class OldPlay(TypedDict):
    """What is used of a play that was stored."""

    seed: int
    runs: int
    builds: int
    right: bool


class OldCell(TypedDict):
    kind: Mapping[str, object]
    search: str
    plays: list[OldPlay]


Old = dict[tuple[str, str], dict[int, OldPlay]]


def read_old(path: Path) -> Old:
    """What ``--json`` wrote."""
    cells: list[OldCell] = json.loads(path.read_text())["cells"]
    return {
        (_name(each["kind"]), each["search"]): {one["seed"]: one for one in each["plays"]}
        for each in cells
    }


def differences(plays: Plays, old: Old) -> Iterator[list[str]]:
    """A row for each cell that both have played; old minus new, with its standard error."""
    for (cell, method), made in plays.items():
        known = old.get((_name(_facts(cell.kind)), method), {})
        pairs = [(known[each.seed], each) for each in made if each.seed in known]
        if len(pairs) > 1:
            yield [
                cell.label,
                method,
                str(len(pairs)),
                " to ".join(f"{mean:.1f}" for mean in _means(pairs)),
                _paired([a["runs"] - b.runs for a, b in pairs]),
                _paired([a["builds"] - b.builds for a, b in pairs]),
                _paired([100 * (b.right - a["right"]) for a, b in pairs]) + " points",
            ]


def _means(pairs: list[tuple[OldPlay, Play]]) -> tuple[float, float]:
    return fmean(old["runs"] for old, _ in pairs), fmean(new.runs for _, new in pairs)


def _paired(values: list[int]) -> str:
    return f"{fmean(values):+.2f} ± {stdev(values) / math.sqrt(len(values)):.2f}"


def _facts(kind: Kind) -> Mapping[str, object]:
    """As JSON gives it back."""
    found: Mapping[str, object] = json.loads(json.dumps(asdict(kind)))
    return found


def _name(kind: Mapping[str, object]) -> str:
    return json.dumps(kind, sort_keys=True)
