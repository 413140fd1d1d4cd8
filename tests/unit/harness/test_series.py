from __future__ import annotations

from itertools import pairwise

import pytest
from goldens import assert_golden
from hypothesis import given
from hypothesis import strategies as st

from dsharness.matrix.series_graph import (
    Drawing,
    as_data,
    as_dot,
    as_text,
    chains,
    chains_of,
    count_chains,
    find_cycle,
    graph_of,
    known_releases,
    topological,
)
from dsharness.model import Series


def series(*rows: str, **parents: tuple[str, ...]) -> Series:
    return Series(id="s", title="t", rows=rows, parents=parents)


@pytest.mark.parametrize(
    ("given_series", "expected"),
    [
        (series("a", "b", "c"), (("a", "b", "c"),)),
        (series(b=("a",), c=("b",)), (("a", "b", "c"),)),
        # a ─ b ─ c
        #     └── d
        (series(b=("a",), c=("b",), d=("b",)), (("a", "b", "c"), ("a", "b", "d"))),
        # two roots, one leaf
        (series(c=("a", "b")), (("a", "c"), ("b", "c"))),
        # a diamond
        (
            series(b=("a",), c=("a",), d=("b", "c")),
            (("a", "b", "d"), ("a", "c", "d")),
        ),
        # a parent named twice is one parent
        (series(b=("a", "a")), (("a", "b"),)),
    ],
)
def test_chains_are_the_paths_from_root_to_leaf(given_series, expected):
    assert chains(given_series) == expected


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [
        ({"a": ("a",)}, ("a", "a")),
        ({"a": ("b",), "b": ("a",)}, ("a", "b", "a")),
        ({"b": ("a",), "c": ("b",), "a": ("c",)}, ("a", "b", "c", "a")),
        # the way into the cycle is not part of it
        ({"x": ("a",), "a": ("b",), "b": ("a",)}, ("a", "b", "a")),
        ({"b": ("a",), "c": ("a", "b")}, None),
    ],
)
def test_names_the_cycle(parents, cycle):
    found = find_cycle(graph_of(Series(id="s", title="t", parents=parents)))
    if cycle is None:
        assert found is None
        return
    assert found is not None
    assert found[0] == found[-1]
    assert set(found) == set(cycle)
    assert len(found) == len(cycle)
    assert all(older in parents[newer] for older, newer in pairwise(found))


def test_a_long_line_needs_no_deep_stack():
    rows = tuple(f"r{number}" for number in range(5000))
    assert chains(series(*rows)) == (rows,)
    assert find_cycle(graph_of(series(*rows))) is None


def test_counts_more_chains_than_could_ever_be_made():
    graph: dict[str, tuple[str, ...]] = {"n0": ()}
    for step in range(60):
        top = f"n{step}"
        graph |= {f"l{step}": (top,), f"r{step}": (top,), f"n{step + 1}": (f"l{step}", f"r{step}")}
    assert count_chains(graph) == 2**60


@st.composite
def dags(draw):
    """Each node's parents are among the nodes before it."""
    size = draw(st.integers(1, 8))
    return {
        f"n{node}": tuple(f"n{parent}" for parent in range(node) if draw(st.booleans()))
        for node in range(size)
    }


@given(dags())
def test_every_edge_lies_on_a_chain_and_every_chain_is_made_of_edges(graph):
    lines = chains_of(graph)
    edges = {(parent, node) for node, parents in graph.items() for parent in parents}
    assert {edge for line in lines for edge in pairwise(line)} == edges
    assert {node for line in lines for node in line} == set(graph)


@given(dags())
def test_chains_start_at_roots_end_at_leaves_and_are_counted(graph):
    lines = chains_of(graph)
    above = {parent for parents in graph.values() for parent in parents}
    assert all(not graph[line[0]] and line[-1] not in above for line in lines)
    assert len(lines) == len(set(lines)) == count_chains(graph)


@given(dags(), st.randoms())
def test_topological_order_puts_parents_first_however_the_graph_is_written(graph, random):
    names = list(graph)
    random.shuffle(names)
    order = topological({name: graph[name] for name in names})
    assert sorted(order) == sorted(graph)
    place = {name: index for index, name in enumerate(order)}
    assert all(place[p] < place[node] for node, parents in graph.items() for p in parents)


@given(dags(), st.data())
def test_an_edge_back_makes_a_cycle_and_only_that(graph, data):
    assert find_cycle(graph) is None
    line = data.draw(st.sampled_from(chains_of(graph)))
    newer = data.draw(st.integers(0, len(line) - 1))
    older = data.draw(st.integers(0, newer))
    closed = {**graph, line[older]: (*graph[line[older]], line[newer])}
    cycle = find_cycle(closed)
    assert cycle is not None
    assert cycle[0] == cycle[-1]
    assert all(a in closed[b] for a, b in pairwise(cycle))


def drawing(graph: dict[str, tuple[str, ...]], **kinds: str) -> Drawing:
    said = {node: kinds.get(node, "") for node in graph}
    return Drawing(id="s", title="A series", graph=graph, labels=said, kinds=said)


@pytest.mark.parametrize(
    ("graph", "kinds", "lines"),
    [
        ({"a": (), "b": ("a",)}, {}, ["", "o a, b"]),
        ({"a": (), "b": ("a",), "c": ("b",)}, {}, ["", "o a .. c (3)"]),
        # the change starts a line of its own
        (
            {"a": (), "b": ("a",), "c": ("b",)},
            {"a": "x", "b": "x", "c": "y"},
            ["", "o a, b  x", "* c  y"],
        ),
        # nothing known of b: no change is claimed
        ({"a": (), "b": ("a",)}, {"a": "x"}, ["", "o a  x", "o b"]),
        # branches stand aside, the first child continues below
        (
            {"a": (), "b": ("a",), "c": ("a",), "d": ("c",)},
            {"c": "x", "d": "y"},
            ["", "o a", "|\\", "| o c  x", "| * d  y", "o b"],
        ),
        # a second parent is named
        (
            {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")},
            {},
            ["", "o a", "|\\", "| o c", "o b", "o d  (also after c)"],
        ),
        ({"a": (), "b": ()}, {}, ["", "o a", "", "o b"]),
    ],
)
def test_draws_branches_as_columns(graph, kinds, lines):
    assert as_text(drawing(graph, **kinds)).splitlines() == ["A series", *lines]


def releases() -> Drawing:
    series, table = known_releases()
    said = {release.version: release.shown for release in table}
    return Drawing(id=series.id, title="t", graph=graph_of(series), labels=said, kinds=said)


def test_the_releases_look_as_they_did():
    assert_golden("matrix/releases.txt", as_text(releases()))
    assert as_text(releases()).isascii()


def test_the_data_marks_what_changed():
    data = as_data(releases())
    changed = {node["id"] for node in data["nodes"] if node["changed"]}
    assert {"2.0.17", "2.1.6", "2.2.3", "2.3.0", "3.1.2"} <= changed
    assert "2.0.16" not in changed
    assert ["2.0.16", "2.0.17"] in [chain[-3:-1] for chain in data["chains"]]


def test_dot_quotes_and_links():
    text = as_dot(drawing({'a"b': (), "c": ('a"b',)}))
    assert '  "a\\"b" -> "c";' in text
    assert text.startswith('digraph "s" {')


@given(st.lists(st.integers(0, 20), min_size=1, max_size=20))
def test_every_node_is_drawn_once(choices):
    graph: dict[str, tuple[str, ...]] = {"n0": ()}
    for number, choice in enumerate(choices, start=1):
        graph[f"n{number}"] = (f"n{choice % number}",)
    said = {node: f"about {node}" for node in graph}  # unlike labels share no line
    text = as_text(Drawing(id="s", title="t", graph=graph, labels=said, kinds=said))
    drawn = [line.split()[-3] for line in text.splitlines() if "about" in line]
    assert sorted(drawn) == sorted(graph)
