"""A series as a directed graph: the lines along which one boundary each is searched.

    2.0.1 ── 2.0.16 ── 2.0.17          chains: 2.0.1 … 2.0.17
               └────── 2.1.0 ── 2.1.6          2.0.1 … 2.0.16, 2.1.0, 2.1.6

It is drawn as text, as Graphviz's dot, or as data. A graph is a mapping from each node to its
parents. The tagged releases of a product are such a series too: its branches are read off the
versions and dates, since upstream's branches run in parallel and take the same backports.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from pathlib import Path
from typing import Annotated

import pydantic

from dsharness.errors import MatrixError
from dsharness.model import Series, Value
from dsharness.products import product, release_files
from dsharness.products.product import ReleaseFacts

Chain = tuple[str, ...]
Graph = Mapping[str, tuple[str, ...]]  # every node is a key, in written order; no parent twice


def graph_of(series: Series) -> dict[str, tuple[str, ...]]:
    """Return every candidate of the series with its parents; a plain list is one line."""
    if not series.parents:
        rows = series.rows
        before = dict.fromkeys(rows[:1], ()) | {new: (old,) for old, new in pairwise(rows)}
        return {row: tuple(before[row]) for row in rows}
    named = dict.fromkeys(
        node for child, parents in series.parents.items() for node in (*parents, child)
    )
    return {node: tuple(dict.fromkeys(series.parents.get(node, ()))) for node in named}


def children_of(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Return the same graph, read downwards."""
    below: dict[str, list[str]] = {node: [] for node in graph}
    for node, parents in graph.items():
        for parent in parents:
            below[parent].append(node)
    return {node: tuple(children) for node, children in below.items()}


def find_cycle(graph: Graph) -> Chain | None:
    """Return one cycle, oldest end first and closed (`a, b, a`), or None."""
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
    """Return how many chains there are, without making them: diamonds in a row double each time."""
    below = children_of(graph)
    lines: dict[str, int] = {}
    for node in reversed(topological(graph)):
        lines[node] = sum(lines[child] for child in below[node]) or 1
    return sum(lines[node] for node in graph if not graph[node])


def chains(series: Series) -> tuple[Chain, ...]:
    """Return every path from a root to a leaf; the frontier is the union of their boundaries."""
    return chains_of(graph_of(series))


def chains_of(graph: Graph) -> tuple[Chain, ...]:
    """Return the same for a bare graph; it must have no cycle."""
    below = children_of(graph)
    chains: list[Chain] = []
    open_ends: list[Chain] = [(node,) for node in reversed(list(graph)) if not graph[node]]
    while open_ends:
        chain = open_ends.pop()
        if below[chain[-1]]:
            open_ends.extend((*chain, child) for child in reversed(below[chain[-1]]))
        else:
            chains.append(chain)
    return tuple(chains)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A graph without cycles, the label of each node, and what makes two nodes differ."""

    id: str
    title: str
    graph: Graph
    labels: Mapping[str, str]
    kinds: Mapping[str, str]  # "" where nothing is known of the node

    def changed(self, node: str) -> bool:
        """Return whether the node's kind differs from a parent's."""
        kind = self.kinds[node]
        before = {self.kinds[parent] for parent in self.graph[node]}
        return bool(kind and before - {kind, ""})


def as_text(drawing: Drawing) -> str:
    """Draw a column for each branch, as git draws history; `*` where the kind changes."""
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
    """Return the drawing for Graphviz: changed nodes are filled."""
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
    """Return every node with its parents, and the lines along which a boundary is searched."""
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
    """Return the tree that is drawn: each node under the first of its parents."""
    return children_of({node: parents[:1] for node, parents in graph.items()})


def _run(node: str, below: Mapping[str, tuple[str, ...]]) -> Chain:
    run = [node]
    while len(below[run[-1]]) == 1:
        run.append(below[run[-1]][0])
    return tuple(run)


def _stretches(run: Chain, drawing: Drawing) -> Iterator[str]:
    """Yield neighbours with the same label share a line."""
    for (label, other_parents), group in groupby(
        run, key=lambda node: (drawing.labels[node], drawing.graph[node][1:])
    ):
        nodes = list(group)
        names = ", ".join(nodes) if len(nodes) < 3 else f"{nodes[0]} .. {nodes[-1]} ({len(nodes)})"
        branches = f"  (also after {', '.join(other_parents)})" if other_parents else ""
        text = f"  {label}" if label else ""
        yield f"{'*' if drawing.changed(nodes[0]) else 'o'} {names}{text}{branches}"


Tag = Annotated[str, pydantic.Field(pattern=r"^\d+\.\d+[0-9.-]*$", max_length=64)]
COLUMNS = ("version", "date", "commit")


class Release(Value):
    """One tag."""

    version: Tag
    date: date
    commit: str
    branch: str
    shown: str

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", self.version))


def load_releases(where: Path, facts: ReleaseFacts) -> tuple[Release, ...]:
    """Return every release of the table, by version; MatrixError with the line that is wrong."""
    try:
        with where.open(encoding="utf-8", newline="") as stream:
            table = csv.DictReader(stream)
            read = [_release(f"{where}:{table.line_num}", record, facts) for record in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MatrixError(f"{where}: cannot be read: {error}") from error
    if not read:
        raise MatrixError(f"{where}: no release; a line for each tag is needed")
    versions = [release.version for release in read]
    twice = sorted({version for version in versions if versions.count(version) > 1})
    if twice:
        raise MatrixError(f"{where}: more than once: {', '.join(twice)}; one line for each tag")
    return tuple(sorted(read, key=lambda release: (release.numbers, release.version)))


def _release(
    where: str, record: dict[str | None, str | list[str] | None], facts: ReleaseFacts
) -> Release:
    columns = {name: cell for name, cell in record.items() if name and isinstance(cell, str)}
    if len(columns) < len(record):
        raise MatrixError(f"{where}: not as many cells as columns")
    try:
        commit_text = facts.text_of(columns)
        cells = {name: columns[name] for name in COLUMNS}
    except KeyError as error:
        raise MatrixError(f"{where}: no column {error}") from None
    try:
        branch = facts.branch_of(cells["version"])
        return Release.model_validate({**cells, "branch": branch, "shown": commit_text})
    except pydantic.ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        column = "".join(f"{part}: " for part in wrong["loc"])
        raise MatrixError(f"{where}: {column}{wrong['msg']}") from error


SERIES_ID = "releases"


def parents_of(releases: Sequence[Release]) -> dict[str, tuple[str, ...]]:
    """Return each tag's parent: the one before it in its branch, or the one its branch forked from.

    A branch forks from the last tag before its own first one, of the nearest older branch
    that had any tag by then.
    """
    parents: dict[str, tuple[str, ...]] = {}
    older: list[list[Release]] = []
    for _, tags in groupby(releases, key=lambda release: release.branch):
        branch = list(tags)
        above: Release | None = _fork(branch[0], older)
        for release in branch:
            parents[release.version] = () if above is None else (above.version,)
            above = release
        older.append(branch)
    return parents


def release_series(releases: Sequence[Release], title: str) -> Series:
    """Return the releases as one series: a chain for each branch that was not continued."""
    return Series(id=SERIES_ID, title=title, parents=parents_of(releases))


def known_releases() -> tuple[Series, tuple[Release, ...]]:
    """Return the one product's whose releases the lab has a table of."""
    name, path = next(iter(release_files().items()))
    facts = product(name)
    releases = load_releases(path, facts.releases)
    by_whom = f", by {facts.releases.title}" if facts.releases.title else ""
    return release_series(releases, f"Every tagged release of {facts.title}{by_whom}"), releases


def _fork(first: Release, older: Iterable[list[Release]]) -> Release | None:
    for branch in reversed(list(older)):
        earlier = [release for release in branch if release.date < first.date]
        if earlier:
            return earlier[-1]
    return None
