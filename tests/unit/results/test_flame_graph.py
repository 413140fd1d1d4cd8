"""The facts of flame graphs: widths that sum up, titles with figures, colours by what changed."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from accessibility import needs_browser, serious
from shipped import MATRIX

from dsharness.model import CpuProfile
from dsresults.profile_pair import (
    FLAME_WIDTH,
    Flame,
    ProfilePair,
    flame_graph,
    flame_graphs,
    profiles_of,
    shade,
)
from dsresults.report import ReportData, render_html, report_data


def profile(name: str, us: float, **stacks: int) -> CpuProfile:
    return CpuProfile(
        candidate_id=name, workload_id="bind-one", event="cpu-clock", operations=100,
        cpu_us_per_op=us, stacks={path.replace("__", ";"): seen for path, seen in stacks.items()},
    )  # fmt: skip


BEFORE = profile("old", 100.0, main__read=40, main__hash=50, main=10)
AFTER = profile("new", 1000.0, main__read=4, main__hash__round=95, main=1)
PAIR = ProfilePair(
    campaign_id="c1", workload_id="bind-one", names=("old", "new"), before=BEFORE, after=AFTER
)


def named(flames: tuple[Flame, ...], name: str) -> Flame:
    return next(flame for flame in flames if flame.title.startswith(f"{name}:"))


def test_callers_are_as_wide_as_what_they_call_and_their_own_time() -> None:
    flames = flame_graph(BEFORE, "t").flames
    assert named(flames, "all").width == FLAME_WIDTH == named(flames, "main").width
    read, hashed = named(flames, "read"), named(flames, "hash")
    assert (read.width, hashed.width) == (400.0, 500.0)
    assert read.y == hashed.y > named(flames, "main").y
    assert hashed.x + hashed.width == read.x, "side by side, in the order of their names"
    assert "50.0 µs per operation, 50.0 %" in hashed.title


def test_the_difference_is_drawn_on_the_slower_side_by_cost_not_by_counts() -> None:
    _, _, changed = flame_graphs(PAIR)
    assert "drawn on new" in changed.title
    hashed, read = named(changed.flames, "hash"), named(changed.flames, "read")
    assert hashed.shade == "more-3"
    assert "900 µs more than before" in hashed.title
    assert read.shade == "same", "40 of 100 became 4 of 100, but both cost 40 µs"


@pytest.mark.parametrize(
    ("change", "name"),
    [(0.0, "same"), (0.004, "same"), (0.01, "more-1"), (-0.1, "less-2"), (-0.5, "less-3")],
)
def test_shades(change: float, name: str) -> None:
    assert shade(change) == name


def test_changes_are_of_functions_themselves_the_largest_first() -> None:
    assert [(each.function, each.change) for each in PAIR.changes] == [
        ("round", 950.0),
        ("hash", -50.0),
        ("main", 0.0),
        ("read", 0.0),
    ]


def test_a_pair_comes_back_from_its_finding() -> None:
    assert profiles_of([PAIR.finding], ["c1", "c2"]) == (PAIR,)
    assert profiles_of([PAIR.finding], ["c2"]) == ()


def page(pair: ProfilePair) -> str:
    return render_html(report_data(MATRIX, (), (), {}, (pair,)))


def test_the_page_has_three_graphs_with_titles_and_no_script_of_their_own() -> None:
    html = page(PAIR)
    drawn = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]
    assert len(drawn) == 3
    for svg in drawn:
        frames = svg.findall("g")
        assert frames
        assert all(each.findtext("title") for each in frames)
        assert svg.get("aria-labelledby", "").split() == [
            each.get("id") for each in (svg.find("title"), svg.find("desc")) if each is not None
        ]
    assert not any("<script" in svg for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    assert html.count('<details class="flames">') == 3


def test_names_of_functions_are_escaped() -> None:
    evil = PAIR.model_copy(update={"after": profile("new", 9.0, **{"<script>x</script>": 1})})
    assert page(evil).count("<script") == 1  # the page's own


def test_what_has_no_profile_says_why() -> None:
    told = ProfilePair(
        campaign_id="c", workload_id="bind-one", names=("old", "new"), note="perf saw nothing"
    )
    assert "No profile: perf saw nothing." in page(told)
    assert flame_graphs(told) == ()


def test_json_has_the_table() -> None:
    data = report_data(MATRIX, (), (), {}, (PAIR,)).model_dump(mode="json")
    assert data["profiles"][0]["changes"][0]["function"] == "round"
    assert ReportData.model_fields["profiles"].default == ()


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    assert serious(page(PAIR)) == []
