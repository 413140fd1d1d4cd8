"""A series as a directed graph: the lines along which one boundary each is searched.

    2.0.1 ── 2.0.16 ── 2.0.17          chains: 2.0.1 … 2.0.17
               └────── 2.1.0 ── 2.1.6          2.0.1 … 2.0.16, 2.1.0, 2.1.6

Pure: values in, values out. A graph is a mapping from each node to its parents.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from dsharness.model import Series

Chain = tuple[str, ...]
Graph = Mapping[str, tuple[str, ...]]  # every node is a key, in written order; no parent twice


def graph_of(series: Series) -> dict[str, tuple[str, ...]]:
    """Every candidate of the series with its parents; a plain list is one line."""
    if not series.parents:
        rows = series.rows
        before = dict.fromkeys(rows[:1], ()) | {new: (old,) for old, new in pairwise(rows)}
        return {row: tuple(before[row]) for row in rows}
    named = dict.fromkeys(
        node for child, parents in series.parents.items() for node in (*parents, child)
    )
    return {node: tuple(dict.fromkeys(series.parents.get(node, ()))) for node in named}


def children_of(graph: Graph) -> dict[str, tuple[str, ...]]:
    """The same graph, read downwards."""
    below: dict[str, list[str]] = {node: [] for node in graph}
    for node, parents in graph.items():
        for parent in parents:
            below[parent].append(node)
    return {node: tuple(children) for node, children in below.items()}


def find_cycle(graph: Graph) -> Chain | None:
    """One cycle, oldest end first and closed (`a, b, a`), or None."""
    try:
        _sorter(graph).prepare()
    except CycleError as error:
        ring: list[str] = error.args[1]
        return tuple(ring)
    return None


def topological(graph: Graph) -> Chain:
    """Every node after its parents; ties in the order written. The graph must have no cycle."""
    return tuple(_sorter(graph).static_order())


def _sorter(graph: Graph) -> TopologicalSorter[str]:
    sorter = TopologicalSorter[str](dict.fromkeys(graph, ()))  # the order written
    for node, parents in graph.items():
        sorter.add(node, *parents)
    return sorter


def count_chains(graph: Graph) -> int:
    """How many chains there are, without making them: diamonds in a row double each time."""
    below = children_of(graph)
    lines: dict[str, int] = {}
    for node in reversed(topological(graph)):
        lines[node] = sum(lines[child] for child in below[node]) or 1
    return sum(lines[node] for node in graph if not graph[node])


def chains(series: Series) -> tuple[Chain, ...]:
    """Every path from a root to a leaf; the frontier is the union of their boundaries."""
    return chains_of(graph_of(series))


def chains_of(graph: Graph) -> tuple[Chain, ...]:
    """The same for a bare graph; it must have no cycle."""
    below = children_of(graph)
    found: list[Chain] = []
    open_ends: list[Chain] = [(node,) for node in reversed(list(graph)) if not graph[node]]
    while open_ends:
        chain = open_ends.pop()
        if below[chain[-1]]:
            open_ends.extend((*chain, child) for child in reversed(below[chain[-1]]))
        else:
            found.append(chain)
    return tuple(found)
