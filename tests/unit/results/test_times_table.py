"""The times of a server's log in the report: a table of both sides, its remarks, its lines."""

from __future__ import annotations

import pytest
from accessibility import needs_browser, serious
from shipped import MATRIX

from dsharness.model import KindTimes, Latencies, ServerTimes
from dsresults.profile_pair import ProfilePair
from dsresults.report import render_html, render_markdown, report_data
from dsresults.times_table import notes_rows, times_cells, times_rows


def side(name: str, us: float, *, unindexed: int = 0, count: int = 1000) -> ServerTimes:
    kind = KindTimes(
        whole=Latencies.of({us: count - 10, 20 * us: 10}),
        worked=Latencies.of({us - 10: count}),
        notes={"U": unindexed} if unindexed else {},
        middle=(f"conn=1 op=2 SRCH of {name} <b>", "conn=1 op=2 RESULT"),
        slowest=("conn=1 op=9 SRCH", "conn=1 op=9 RESULT"),
    )
    return ServerTimes(candidate_id=name, workload_id="load", kinds={"search": kind})


SIDES = (side("old", 100), side("new", 900, unindexed=1000))
PAIR = ProfilePair(campaign_id="c1", workload_id="load", names=("old", "new"), times=SIDES)


def test_each_part_of_the_time_is_a_row_and_what_is_not_known_is_a_dash() -> None:
    worked, whole = times_rows(SIDES)
    few = side("old", 100, count=20), side("new", 100, count=20)
    assert times_cells(times_rows(few)[0]) == ("search", "in a thread", "90.0", "-", "90.0", "-")
    assert (worked.before_us[0], worked.after_us[0]) == (90.0, 890.0)
    assert (whole.before_us[0], whole.after_us[0]) == (100.0, 900.0)
    assert [(row.note, row.before, row.after) for row in notes_rows(SIDES)] == [("U", 0, 1000)]


def test_what_the_load_saw_stands_next_to_what_the_server_says() -> None:
    by_load = {"search": Latencies.of({150.0: 1000}), "search+bind": Latencies.of({9.0: 1})}
    *_, seen = times_rows([each.also_seen(by_load) for each in SIDES])
    assert times_cells(seen) == ("search", "as the load saw it", "150", "150", "150", "150")


def test_a_percentile_that_few_exceed_is_a_dash() -> None:
    (_, whole) = times_rows((side("old", 100, count=100), side("new", 100, count=100)))
    assert whole.before_us[0] is not None
    assert whole.before_us[1] is None


def test_a_kind_of_one_side_only_is_shown() -> None:
    none = ServerTimes(candidate_id="old", workload_id="load", kinds={})
    whole = times_rows((none, SIDES[1]))[-1]
    assert (whole.before_us, whole.after_us[0]) == ((None, None), 900.0)


def test_without_two_sides_there_is_no_table() -> None:
    assert times_rows(SIDES[:1]) == () == notes_rows(())


def page(pair: ProfilePair) -> str:
    return render_html(report_data(MATRIX, (), (), {}, (pair,)))


def test_page_and_markdown_have_the_table_and_the_remark() -> None:
    html = page(PAIR)
    assert "in a thread" in html
    assert "Search: notes=U on 0, then 1,000 answers." in html
    assert "SRCH of new &lt;b&gt;" in html
    text = render_markdown(report_data(MATRIX, (), (), {}, (PAIR,)))
    assert "| search | from request to answer | 100 |" in text
    silent = PAIR.model_copy(update={"times": (), "times_note": "old: its log cannot be read"})
    assert "own log: old: its log cannot be read." in page(silent)


def test_json_has_rows_and_histograms() -> None:
    (pair,) = report_data(MATRIX, (), (), {}, (PAIR,)).model_dump(mode="json")["profiles"]
    assert pair["times_rows"][1]["after_us"][0] == 900.0
    assert pair["times"][0]["kinds"]["search"]["whole"]["encoded"]


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_table_is_hidden_from_any_reader() -> None:
    assert serious(page(PAIR)) == []
