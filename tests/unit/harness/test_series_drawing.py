from __future__ import annotations

import pytest
from goldens import assert_golden
from hypothesis import given
from hypothesis import strategies as st

from dsharness.matrix.releases import known_releases
from dsharness.matrix.series_drawing import Drawing, as_data, as_dot, as_text
from dsharness.matrix.series_graph import graph_of


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
