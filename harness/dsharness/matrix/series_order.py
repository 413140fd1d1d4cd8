"""Whether a series is an order one can search along."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.matrix.series_graph import count_chains, find_cycle, graph_of
from dsharness.model import Series
from dsharness.yaml_files.problems import KeyPath, Problem

MAX_CHAINS = 1000  # each is searched on its own; the DAG of all releases has about fifteen


def order_findings(at: KeyPath, series: Series) -> Iterator[Problem]:
    """What keeps one from searching along a series."""
    if series.rows and series.parents:
        yield Problem(
            path=at,
            value=series.id,
            allowed="both `rows` and `parents`; give `rows` for a line or `parents` for branches",
        )
    repeated = [row for row in dict.fromkeys(series.rows) if series.rows.count(row) > 1]
    if repeated:
        yield Problem(
            path=(*at, "rows"),
            value=", ".join(repeated),
            allowed="more than once in one series; each row once",
        )
        return
    graph = graph_of(series)
    if len(graph) < 2:
        yield Problem(
            path=at,
            value=series.id,
            allowed=f"a series of {len(graph)} rows has nothing to search; at least 2 are needed",
        )
    cycle = find_cycle(graph)
    if cycle is not None:
        yield Problem(
            path=(*at, "parents"),
            value=" -> ".join(cycle),
            allowed="a cycle; an order needs each row to come before its descendants only",
        )
    elif count_chains(graph) > MAX_CHAINS:
        yield Problem(
            path=(*at, "parents"),
            value=series.id,
            allowed=f"{count_chains(graph)} lines from root to leaf; at most {MAX_CHAINS}",
        )
