"""A standing watch as pages: one of all, with alarms and machines, and one of each series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, Template

from dsharness.content_key import content_key
from dsharness.measure.metrics import METRICS
from dsresults.number_text import duration, percent, significant, utc, whole
from dsresults.page.page_files import page_environment, write_files
from dsresults.watch.alarms import Alarm
from dsresults.watch.series_chart import ChartArea, series_chart
from dsresults.watch.watch_state import WatchedBranchTips, WatchState
from dsresults.watch.watched_series import WatchedTip

PAGE = "watch.html"
TEMPLATES = ("watched-series.html.jinja", "watched-pieces.html.jinja", "page.css", "watch.css")
KEY_WITHIN = 1024  # bytes from a page's begin
TIP_WIDTH, MOST_WIDTH = 6.0, 2400.0  # of a series' own chart, which scrolls


def page_names(state: WatchState) -> tuple[str, ...]:
    """The page of all comes last: it leads to the others."""
    return (*(each.page for each in state.series), PAGE)


def render_page(state: WatchState, name: str, *, reports: str = "") -> str:
    """One of the watch's pages as a whole HTML document; KeyError for any other name.

    ``reports`` is where a campaign's report is, if it can be followed to.
    """
    if name == PAGE:
        return _environment().get_template("watch.html.jinja").render(state=state)
    shown = {each.page: each for each in state.series}[name]
    width = min(MOST_WIDTH, max(ChartArea().width, TIP_WIDTH * len(shown.tips)))
    return _series_template().render(
        key=_key(state, shown),
        state=state,
        shown=shown,
        chart=series_chart(shown, ChartArea(width=width, height=230, bottom=196)),
        alarms=_alarms_by_tip(state, shown),
        reports=reports,
    )


def _alarms_by_tip(state: WatchState, shown: WatchedBranchTips) -> Mapping[str, Alarm]:
    """By the moment of the tip's answer, which is that of the event it made."""
    return {
        event.at: alarm
        for alarm in state.alarms
        for event in alarm.events
        if event.series == shown.series
    }


def _key(state: WatchState, shown: WatchedBranchTips) -> str:
    """A series' page says the same while this does: it depends on what it shows, and how."""
    alarms = _alarms_by_tip(state, shown)
    said = [(tip.at, tip.summary) for tip in shown.tips]
    states = [(at, alarm.id, alarm.state) for at, alarm in alarms.items()]
    loader = _environment().loader
    sources = [loader.get_source(_environment(), name)[0] for name in TEMPLATES] if loader else []
    return content_key([state.id, said, states, sources])


def _series_template() -> Template:
    return _environment().get_template(TEMPLATES[0])


@cache
def _environment() -> Environment:
    environment = page_environment()
    environment.filters.update(
        significant=significant, utc=utc, duration=duration, whole=whole, percent=percent
    )
    environment.globals.update(
        series_chart=series_chart, metrics=METRICS, tip_lines=tip_lines, home=PAGE
    )
    return environment


def tip_lines(tip: WatchedTip) -> Iterator[tuple[str, str, str, str]]:
    """Of each turn: its number, its machine, how long it took, and its runs' values."""
    machines = {share.id: share.text or share.id for share in tip.machines}
    for turn in tip.turns.turns:
        runs = ", ".join(
            f"{candidate} {significant(value) if value is not None else 'not usable'}"
            for candidate, value in turn.runs
        )
        machine = machines.get(turn.machine, turn.machine)
        yield f"{turn.number}", machine, f"{turn.seconds:.1f} s", runs


def write_watch(folder: Path, state: WatchState) -> Path:
    """Write watch.json and each page that is not there as it would be; the first page's path."""
    stale = {
        each.page: render_page(state, each.page)
        for each in state.series
        if not _is_written(folder / each.page, _key(state, each))
    }
    facts = {"watch.json": state.model_dump_json(indent=2) + "\n"}
    write_files(folder, facts | stale | {PAGE: render_page(state, PAGE)})
    return folder / PAGE


def _is_written(page: Path, key: str) -> bool:
    try:
        with page.open("rb") as stream:
            return f'content="{key}"'.encode() in stream.read(KEY_WITHIN)
    except OSError:
        return False
