"""A series drawn as text, as Graphviz's dot, or as data. Pure: values in, text out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from dsharness.matrix.series_graph import Chain, Graph, chains_of, children_of, topological


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A graph without cycles, the label of each node, and what makes two nodes differ."""

    id: str
    title: str
    graph: Graph
    labels: Mapping[str, str]
    kinds: Mapping[str, str]  # "" where nothing is known of the node

    def changed(self, node: str) -> bool:
        """Whether the node's kind differs from a parent's."""
        kind = self.kinds[node]
        before = {self.kinds[parent] for parent in self.graph[node]}
        return bool(kind and before - {kind, ""})


def as_text(drawing: Drawing) -> str:
    """One column for each branch, as git draws history; `*` where the kind changes."""
    below = _drawn_below(drawing.graph)
    lines = [drawing.title]
    roots = [node for node in drawing.graph if not drawing.graph[node]]
    # o 2.0.0 .. 2.0.14 (16)     a run of nodes, as far as nothing forks
    # |\                          the opening of a branch
    # | o 2.1.0                  one column to its left
    # o 2.0.15, 2.0.16           the first child continues below
    waiting = [(root, "", [""]) for root in reversed(roots)]  # node, columns, opening lines
    while waiting:
        node, columns, opening = waiting.pop()
        lines.extend(opening)
        run = _run(node, below)
        lines.extend(f"{columns}{text}" for text in _stretches(run, drawing))
        onward, *aside = below[run[-1]] or (None,)
        if onward is not None:
            waiting.append((onward, columns, []))
        waiting.extend((child, f"{columns}| ", [f"{columns}|\\"]) for child in reversed(aside))
    return "\n".join(lines) + "\n"


def as_dot(drawing: Drawing) -> str:
    """For Graphviz: changed nodes are filled."""
    quoted = json.dumps  # dot's double-quoted strings escape as JSON's do
    lines = [f"digraph {quoted(drawing.id)} {{", "  rankdir=LR; node [shape=box];"]
    for node in topological(drawing.graph):
        text = f"{node}\n{drawing.labels[node]}".strip()
        fill = ", style=filled" if drawing.changed(node) else ""
        lines.append(f"  {quoted(node)} [label={quoted(text)}{fill}];")
    for node, parents in drawing.graph.items():
        lines.extend(f"  {quoted(parent)} -> {quoted(node)};" for parent in parents)
    return "\n".join([*lines, "}"]) + "\n"


def as_data(drawing: Drawing) -> dict[str, object]:
    """Every node with its parents, and the lines along which a boundary is searched."""
    return {
        "series": drawing.id,
        "title": drawing.title,
        "nodes": [
            {
                "id": node,
                "parents": list(drawing.graph[node]),
                "label": drawing.labels[node],
                "kind": drawing.kinds[node],
                "changed": drawing.changed(node),
            }
            for node in topological(drawing.graph)
        ],
        "chains": [list(chain) for chain in chains_of(drawing.graph)],
    }


def _drawn_below(graph: Graph) -> dict[str, tuple[str, ...]]:
    """The tree that is drawn: each node under the first of its parents."""
    return children_of({node: parents[:1] for node, parents in graph.items()})


def _run(node: str, below: Mapping[str, tuple[str, ...]]) -> Chain:
    run = [node]
    while len(below[run[-1]]) == 1:
        run.append(below[run[-1]][0])
    return tuple(run)


def _stretches(run: Chain, drawing: Drawing) -> Iterator[str]:
    """Neighbours with the same label share a line."""
    for (label, others), group in groupby(
        run, key=lambda node: (drawing.labels[node], drawing.graph[node][1:])
    ):
        nodes = list(group)
        names = ", ".join(nodes) if len(nodes) < 3 else f"{nodes[0]} .. {nodes[-1]} ({len(nodes)})"
        also = f"  (also after {', '.join(others)})" if others else ""
        text = f"  {label}" if label else ""
        yield f"{'*' if drawing.changed(nodes[0]) else 'o'} {names}{text}{also}"
