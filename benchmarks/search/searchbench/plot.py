"""The figure of the report; the same plays give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from searchbench.methods import METHODS, OURS
from searchbench.peer_scenarios import MAIN
from searchbench.play import Play
from searchbench.plays import Plays
from searchbench.score import calibration, score

MARKERS = {0.5: "v", 1.0: "o", 2.0: "s", 4.0: "^"}
SHOWN_FROM = 0.93  # stated confidence
TRUE = (0.85, 1.01)


def draw_to(path: Path, plays: Plays) -> None:
    settings: Any = {"svg.hashsalt": "dsbisect", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(13, 4.6), layout="constrained")
        accuracy, builds, truth = figure.subplots(1, 3)
        _against_runs(accuracy, builds, plays)
        _calibrated(
            truth,
            [
                play
                for (_, name), cell_plays in plays.items()
                if name == OURS
                for play in cell_plays
            ],
        )
        handles, labels = accuracy.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=8, frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _against_runs(accuracy: Any, builds: Any, plays: Plays) -> None:  # noqa: ANN401 - untyped axes
    colours = mpl.colormaps["tab20"]
    for (cell, method), cell_plays in plays.items():
        if cell.group != MAIN:
            continue
        cell_score, d = score(cell_plays), cell.kind.d
        style = {
            "color": "black" if method == OURS else colours(list(METHODS).index(method)),
            "marker": MARKERS[d],
            "linestyle": "none",
            "markersize": 9 if method == OURS else 6,
        }
        accuracy.plot(cell_score.runs, cell_score.right, label=method if d == 1 else None, **style)
        builds.plot(cell_score.runs, cell_score.builds, **style)
    for d, marker in MARKERS.items():
        accuracy.plot([], [], color="grey", marker=marker, linestyle="none", label=f"d = {d:g}")
    accuracy.axhline(0.95, color="grey", linewidth=0.6)
    accuracy.set(xscale="log", xlabel="runs", ylabel="right", title="One step among 128")
    builds.set(xscale="log", xlabel="runs", ylabel="builds", title="One step among 128")


def _calibrated(axes: Any, plays: list[Play]) -> None:  # noqa: ANN401 - untyped axes
    bins = [claims for _, _, claims in calibration(plays) if claims.stated >= SHOWN_FROM]
    axes.plot([SHOWN_FROM, 1], [SHOWN_FROM, 1], color="grey", linewidth=0.6)
    axes.errorbar(
        [claims.stated for claims in bins],
        [claims.true for claims in bins],
        yerr=[2 * claims.error for claims in bins],
        fmt="o",
        color="black",
    )
    axes.set(
        xlabel="stated confidence",
        ylabel="true (2 standard errors)",
        title="All histories",
        ylim=TRUE,
    )
