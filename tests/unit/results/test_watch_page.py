"""A watch's pages: alarms with their history, points that lead to commits and runs, machines."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from accessibility import needs_browser, serious
from hypothesis import given
from hypothesis import strategies as st
from seen_page import Part, seen_page
from watched_tips import (
    FORGE,
    MAIN,
    STABLE,
    events_as_stored,
    hash_of,
    measured,
    tip,
    watch_with_an_alarm,
)

from dsresults.moved_packages import moved_packages
from dsresults.page.page_html import html_of
from dsresults.watch.alarms import AlarmState, alarms_of, searched
from dsresults.watch.series_chart import AREA, series_chart
from dsresults.watch.watch_page import PAGE, page_names, watch_page, write_watch
from dsresults.watch.watch_state import WatchedBranchTips, told_watch, watch_state
from dsresults.watch.watched_series import watches_of


def pages() -> dict[str, str]:
    state = watch_with_an_alarm()
    return {name: html_of(watch_page(state, name)) for name in page_names(state)}


def test_the_first_page_tells_alarms_series_machines_and_cost() -> None:
    state = watch_with_an_alarm()
    assert state.answer.startswith("1 open: aaaaaaaaaaaa; 5 tips in 2 series")
    assert "aaaaaaaaaaaa  named      bind costs 1.5 times" in "\n".join(told_watch(state))
    shown: Part = seen_page(html_of(watch_page(state, PAGE)))
    alarms, series, machines = shown.all("table")
    (row,) = alarms.rows[1:]
    assert row[:2] == ["aaaaaaaaaaaa since 2026-11-27 08:00:00 UTC", "named"]
    assert "What became of it: 1 2026-11-27 08:00:00 UTC named main with bind-one:" in row[2]
    assert [row[0] for row in series.rows[1:]] == ["main with bind-one", "stable with bind-one"]
    assert series.rows[1][3] == "1.50\u00d7"
    assert machines.rows[1] == ["A CPU, 2 CPUs, kernel 6.12 lab-1", "6.67 %", "8", "16", "0.0133"]
    assert "0.100 machine hours in all" in shown.text


def test_text_of_commits_and_alarms_is_only_text() -> None:
    for page in pages().values():
        assert "<script>" not in page
        assert "<b>slower" not in page
        assert "<b>a change" not in page


def test_a_row_s_page_lists_the_packages_that_moved() -> None:
    before = {"389-ds-base": "3.1", "libnss3": "3.110", "bash": "5"}
    after = {"389-ds-base": "3.2", "libnss3": "<b>3.111", "bash": "5"}
    moved = moved_packages(before, after, server="389-ds-base", notable=())
    sid = MAIN.model_copy(update={"branch": "debian-sid"})
    tips = [measured(1, series=sid), measured(2, "slower", series=sid, moved=moved)]
    state = watch_state("w", tips, [])
    page = html_of(watch_page(state, page_names(state)[0]))
    assert "<b>3.111" not in page
    packages = next(each for each in seen_page(page).all("table") if "Package" in each.rows[0])
    assert packages.rows[1:] == [["389-ds-base", "3.1", "3.2"], ["libnss3", "3.110", "<b>3.111"]]
    assert page.count("Packages that differ") == 1


def test_every_point_leads_to_its_commit_and_its_runs() -> None:
    found = pages()
    state = watch_with_an_alarm()
    links = re.findall(r'href="(series-[^"#]*)#(t\d+)"', found[PAGE])
    assert set(links) == {
        (each.page, f"t{n}") for each in state.series for n in range(len(each.tips))
    }
    for name, anchor in links:
        assert f'id="{anchor}"' in found[name]
    main = seen_page(found[state.series[0].page])
    articles = {part.attributes["id"]: part for part in main.all("section", "tip")}
    assert list(articles) == ["t3", "t2", "t1", "t0"], "the newest first"
    slow = articles["t1"]
    assert f"{FORGE}{hash_of(2)}" in [link.attributes["href"] for link in slow.all("a")]
    assert f"{PAGE}#alarm-aaaaaaaaaaaa" in [link.attributes["href"] for link in slow.all("a")]
    assert "dsbisect show campaign" in slow.text
    assert slow.all("table")[0].rows[1:] == [
        ["0", "A CPU, 2 CPUs, kernel 6.12", "6.0 s", "000000000000 10.0, 200000000000 12.0"],
        ["1", "A CPU, 2 CPUs, kernel 6.12", "6.0 s", "000000000000 11.0, 200000000000 11.0"],
    ]


@pytest.mark.parametrize("page", ["", "javascript:alert(1)//", "http://example.org/"])
def test_a_commit_of_no_known_forge_is_no_link(page: str) -> None:
    state = watch_state("w", [measured(1, commit_page=page)], ())
    shown = seen_page(html_of(watch_page(state, state.series[0].page)))
    assert [link.attributes["href"] for link in shown.all("section", "tip")[0].all("a")] == []
    assert hash_of(1)[:12] in shown.text


def test_steps_are_marked() -> None:
    (chart, quiet) = map(series_chart, watch_with_an_alarm().series)
    (step,) = chart.find("line", "step")
    assert step.get("class") == "step slower"
    assert [words.text for words in chart.find("text", "step-label")] == ["1.50\u00d7 slower"]
    points = chart.find("circle", "tip-mark")
    assert step.get("x1") == points[1].get("cx")
    assert [point.get("class", "").split()[1] for point in points] == [
        "none", "slower", "none", "open",
    ]  # fmt: skip
    assert quiet.find("line", "step") == ()


def test_a_step_of_a_count_has_no_factor() -> None:
    series = MAIN.model_copy(update={"metric": "fsyncs"})
    tips = [measured(1, series=series), measured(2, "slower", series=series)]
    (words,) = series_chart(watch_state("w", tips, ()).series[0]).find("text", "step-label")
    assert words.text == "slower"


@given(
    st.lists(
        st.tuples(st.integers(0, 10**7), st.sampled_from(["none", "slower", "faster", "unknown"])),
        min_size=1,
        max_size=30,
    )
)
def test_a_chart_has_a_place_to_click_for_each_tip_and_all_of_it_is_inside(
    moments: list[tuple[int, str]],
) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    tips = [
        tip(number, word, at=(begin + timedelta(seconds=second)).isoformat())
        for number, (second, word) in enumerate(sorted(moments))
    ]
    chart = series_chart(WatchedBranchTips(series=MAIN, tips=tuple(tips)))
    links = chart.find("a")
    assert [link.get("href") for link in links] == [f"#t{number}" for number in range(len(tips))]
    end = AREA.left
    for link in links:
        reach, point = link.find("rect"), link.find("circle")
        assert AREA.left <= float(point.get("cx")) <= AREA.right
        assert AREA.top <= float(point.get("cy")) <= AREA.bottom
        assert float(reach.get("x")) == pytest.approx(end, abs=0.2)
        end = float(reach.get("x")) + float(reach.get("width"))
    assert end == pytest.approx(AREA.right, abs=3)
    assert len(chart.find("line", "step")) == sum(each.differs for each in tips)
    marks = chart.find("line", "grid")
    assert 2 <= len(marks) <= 7
    assert all(AREA.top <= float(mark.get("y1")) <= AREA.bottom for mark in marks)


def test_names_that_differ_in_odd_letters_only_have_pages_of_their_own() -> None:
    odd = [MAIN.model_copy(update={"branch": name}) for name in ("a/b", "a-b", "../a b", "\u00e4")]
    names = [WatchedBranchTips(series=each, tips=(tip(1),)).page for each in odd]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"series-[a-z0-9.-]+\.html", name) for name in names)
    assert not any(".." in name for name in names)


def test_a_page_is_written_again_only_when_it_would_say_something_else(tmp_path: Path) -> None:
    state = watch_with_an_alarm()
    main, stable = (tmp_path / each.page for each in state.series)
    assert write_watch(tmp_path, state) == tmp_path / PAGE
    written = json.loads((tmp_path / "watch.json").read_text(encoding="utf-8"))
    assert written["id"] == "w"
    for page in (main, stable):
        page.write_text(page.read_text(encoding="utf-8") + "<!-- old -->", encoding="utf-8")
    tips = [one for each in state.series for one in each.tips]
    write_watch(tmp_path, watch_state("w", [*tips, measured(9, series=STABLE)], state.alarms))
    assert main.read_text(encoding="utf-8").endswith("<!-- old -->")
    assert not stable.read_text(encoding="utf-8").endswith("<!-- old -->")
    write_watch(tmp_path, watch_state("w", tips, ()))
    assert "alarm-" not in main.read_text(encoding="utf-8"), "its alarm is gone"


def test_a_watch_whose_first_search_goes_on_is_shown() -> None:
    event = searched([], hash_of(1), MAIN, AlarmState.NEW, "so far 1.5 times slower")
    found = events_as_stored(event)
    assert watches_of(found) == ("w",)
    state = watch_state("w", (), alarms_of(found))
    assert state.answer == "1 open: 100000000000; 0 tips in 0 series, 0 s of measuring"
    assert "so far 1.5 times slower" in seen_page(html_of(watch_page(state, PAGE))).text


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_pages_is_hidden_from_any_reader() -> None:
    for name, page in pages().items():
        assert serious(page) == [], name
