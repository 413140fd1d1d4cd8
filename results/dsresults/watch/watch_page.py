"""A standing watch as pages: one of all, with alarms and machines, and one of each series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from dsharness.content_key import content_key
from dsharness.measure.metrics import METRICS
from dsresults.number_text import counted, duration, percent, significant, utc, whole
from dsresults.page.page import (
    QUIET,
    UNKNOWN,
    Bullets,
    Card,
    Column,
    Content,
    Fold,
    Grid,
    Listing,
    Page,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    badge,
    code,
    link,
    note,
    or_dash,
    quiet,
)
from dsresults.page.page_files import write_files
from dsresults.page.page_html import html_of
from dsresults.watch.alarms import Alarm, AlarmState
from dsresults.watch.series_chart import series_chart, wide_area
from dsresults.watch.watch_state import MachineUse, WatchedBranchTips, WatchState
from dsresults.watch.watched_series import WatchedTip

PAGE = "watch.html"
SOURCES = (
    "watch/watch_page.py",
    "watch/series_chart.py",
    "page/page_html.py",
    "page/chart.py",
    "templates/page.html.jinja",
    "templates/page.css",
)
KEY_WITHIN = 1024  # bytes from a page's begin
TIP_WIDTH, MOST_WIDTH = 6.0, 2400.0  # of a series' own chart, which scrolls


def page_names(state: WatchState) -> tuple[str, ...]:
    """Return the names of all pages; that of all comes last: it leads to the others."""
    return (*(series.page for series in state.series), PAGE)


def watch_page(state: WatchState, name: str = PAGE, *, reports: str = "") -> Page:
    """Return one of the watch's pages; KeyError for any other name.

    ``reports`` is where a campaign's report is, if it can be followed to.
    """
    if name != PAGE:
        tips = {series.page: series for series in state.series}[name]
        return _series_page(state, tips, reports)
    return Page(
        title=f"watches {state.id}",
        heading=state.id,
        about=(
            (
                "A standing watch of dsbisect: each tip is compared with its series' reference, "
                "and a difference between commits is followed to its commit."
            ),
        ),
        answer=[Card(headline=state.answer, kind="slower" if state.open else "")],
        parts=(
            *([Section(title="Alarms", parts=[_alarms(state)])] if state.alarms else []),
            *([_series(state)] if state.series else []),
            Section(title="Machines and cost", parts=[*_machines(state)]),
        ),
    )


def _alarms(state: WatchState) -> Table:
    return Table(
        kind="candidates watched",
        caption="A cause is one alarm, wherever it was seen.",
        columns=("Alarm", "State", "What", "Seen"),
        rows=[
            Row(
                id=f"alarm-{alarm.id}",
                cells=(
                    (code(alarm.id), quiet(f"since {utc(alarm.since)}")),
                    _badge(alarm.state),
                    (alarm.title or alarm.events[-1].note, *_history(alarm)),
                    tuple(
                        quiet(f"{event.series}: {significant(event.effect or 1.0)} times")
                        for event in alarm.sightings
                    ),
                ),
            )
            for alarm in state.alarms
        ],
    )


def _badge(state: AlarmState) -> Span:
    return badge(state.value, "slow" if state.open else "fast" if state.value == "fixed" else "")


def _history(alarm: Alarm) -> Iterator[Content]:
    events = [
        (
            quiet(utc(event.at)),
            " ",
            _badge(event.state),
            " ",
            f"{event.series}: {event.note}" if event.series else event.note,
        )
        for event in alarm.events
    ]
    listed = Bullets(items=events, kind="history", ordered=True)
    yield Fold(title=f"What became of it: {len(events)}", parts=[listed], kind="plain")
    if alarm.text:
        text = Listing(lines=alarm.text.splitlines())
        yield Fold(title="Text for upstream", parts=[text], kind="plain")


def _series(state: WatchState) -> Section:
    charts = [
        Card(
            kind="plain",
            title=(
                link(f"{series.series.branch} with {series.series.workload}", series.page),
                quiet(f", by {series.series.metric}"),
            ),
            parts=[series_chart(series, page=series.page)],
        )
        for series in state.series
    ]
    table = Table(
        kind="candidates watched",
        caption="The latest tip of each series.",
        columns=("Series", "Tip", "Answer", "Level", "Tips", "Time"),
        rows=[
            (
                link(str(series.series), series.page),
                (
                    link(code(series.tips[-1].tip[:12]), f"{series.page}#t{len(series.tips) - 1}"),
                    quiet(utc(series.tips[-1].at)),
                ),
                series.tips[-1].summary,
                _level(series),
                str(len(series.tips)),
                duration(series.seconds),
            )
            for series in state.series
        ],
    )
    reading = note(
        "As a multiple of the first reference; higher is worse. A point leads to its commit, or "
        "its packages, and its samples."
    )
    grid = Grid(parts=charts, kind="charts watched-charts")
    return Section(title="Series", parts=(reading, grid, table))


def _level(tips: WatchedBranchTips) -> str:
    return or_dash(tips.level, lambda level: f"{significant(level)}\u00d7")


def _machines(state: WatchState) -> Iterator[Content]:
    yield f"{significant(state.seconds / 3600)} machine hours in all, builds included."
    if state.machines:
        yield Table(
            kind="candidates watched",
            caption="Noise is how far two runs of one candidate differ on that machine: the "
            "standard deviation of a run.",
            columns=("Machine", "Noise", "Turns", "Runs", "Hours of runs"),
            rows=[
                (
                    (machine.text or machine.id, quiet(machine.id if machine.text else "")),
                    _noise(machine),
                    whole(machine.turns),
                    whole(machine.runs),
                    significant(machine.seconds / 3600),
                )
                for machine in state.machines
            ],
        )


def _noise(machine: MachineUse) -> Content:
    several = len(machine.noise_pct) > 1
    words_known = tuple(
        Span(words=(percent(noise), quiet(f" {metric}" if several else "")), kind="fact")
        for metric, noise in machine.noise_pct.items()
    )
    return words_known or quiet("not known")


def _series_page(state: WatchState, tips: WatchedBranchTips, reports: str) -> Page:
    metric = METRICS[tips.series.metric]
    width = min(MOST_WIDTH, TIP_WIDTH * len(tips.tips))
    alarms = _alarms_by_tip(state, tips)
    return Page(
        title=f"{tips.series}, {state.id}",
        heading=str(tips.series),
        key=_key(state, tips),
        above=link(state.id, PAGE),
        about=(
            (
                f"By {metric.title}; now at {_level(tips)} the first reference; "
                f"{counted(len(tips.tips), 'tip')}, {duration(tips.seconds)} of measuring."
            ),
        ),
        parts=(
            Grid(
                kind="wide newest",
                label="The series as a chart",
                parts=[series_chart(tips, wide_area(width))],
            ),
            *(
                _tip(tip, number, alarms.get(tip.at), reports)
                for number, tip in reversed([*enumerate(tips.tips)])
            ),
        ),
    )


def _tip(tip: WatchedTip, number: int, alarm: Alarm | None, reports: str) -> Section:
    raised: tuple[Content, ...] = ()
    if alarm:
        target = f"{PAGE}#alarm-{alarm.id}"
        raised = (" ", link(f"alarm {alarm.id}", target), " ", _badge(alarm.state))
    return Section(
        id=f"t{number}",
        kind=f"tip {tip.direction if tip.differs else ''}".strip(),
        title=(_commit(tip, tip.tip), " ", Span(words=tip.subject, kind="subject")),
        parts=(
            Paragraph(words=(tip.summary, *raised), kind="tip-answer"),
            Paragraph(words=tuple(_circumstances(tip, reports)), kind=QUIET),
            *_moved(tip),
            *_runs(tip),
        ),
    )


def _commit(tip: WatchedTip, name: str) -> Span:
    return code(name[:12], tip.page_of(name) or "")


def _circumstances(tip: WatchedTip, reports: str) -> Iterator[Content]:
    yield from (f"measured {utc(tip.at)} next to ", _commit(tip, tip.reference))
    if tip.named:
        yield from ("; named: ", _commit(tip, tip.named))
    if tip.committed:
        yield f"; committed {utc(tip.committed)}"
    yield f"; {duration(tip.seconds)}"
    if reports:
        for campaign in tip.campaigns:
            yield from ("; ", link(f"report {campaign[:8]}", f"{reports}{campaign}/"))
    elif tip.campaigns:
        yield f"; dsbisect show {' '.join(campaign[:8] for campaign in tip.campaigns)}"


def _moved(tip: WatchedTip) -> Iterator[Content]:
    if tip.moved and tip.moved.changes:
        table = Table(
            kind="samples",
            headed=0,
            columns=("Package", "Before", "After"),
            rows=[
                (change.name, change.before or UNKNOWN, change.after or UNKNOWN)
                for change in tip.moved.changes
            ],
        )
        title = f"Packages that differ from its reference: {len(tip.moved.changes)}"
        yield Fold(title=title, parts=[table], kind="plain")


def _runs(tip: WatchedTip) -> Iterator[Content]:
    metric = METRICS[tip.series.metric]
    if tip.machines:
        runs = Column(title=f"{metric.heading} ({metric.unit}) of each run")
        yield Table(
            kind="samples",
            headed=0,
            columns=("Turn", "Machine", "Took", runs),
            rows=[*tip_lines(tip)],
        )
    elif tip.campaigns:
        yield note("Its samples are in the store; the page has those of later tips only.")


def tip_lines(tip: WatchedTip) -> Iterator[tuple[str, str, str, str]]:
    """Yield of each turn its number, its machine, how long it took, and its runs' values."""
    machines = {share.id: share.text or share.id for share in tip.machines}
    for turn in tip.turns.turns:
        runs = ", ".join(
            f"{candidate} {significant(value) if value is not None else 'not usable'}"
            for candidate, value in turn.runs
        )
        machine = machines.get(turn.machine, turn.machine)
        yield f"{turn.number}", machine, f"{turn.seconds:.1f} s", runs


def _alarms_by_tip(state: WatchState, tips: WatchedBranchTips) -> Mapping[str, Alarm]:
    """By the moment of the tip's answer, which is that of the event it made."""
    return {
        event.at: alarm
        for alarm in state.alarms
        for event in alarm.events
        if event.series == tips.series
    }


def _key(state: WatchState, tips: WatchedBranchTips) -> str:
    """A series' page says the same while this does: it depends on what it shows, and how."""
    alarms = _alarms_by_tip(state, tips)
    answers = [(tip.at, tip.summary) for tip in tips.tips]
    states = [(moment, alarm.id, alarm.state) for moment, alarm in alarms.items()]
    return content_key([state.id, answers, states, _sources()])


@cache
def _sources() -> str:
    """Return what makes a page look as it does."""
    return content_key([(files("dsresults") / name).read_text("utf-8") for name in SOURCES])


def write_watch(folder: Path, state: WatchState) -> Path:
    """Write watch.json and each page that is not there as it would be; the first page's path."""
    stale = {
        series.page: html_of(watch_page(state, series.page))
        for series in state.series
        if not _is_written(folder / series.page, _key(state, series))
    }
    facts = {"watch.json": state.model_dump_json(indent=2) + "\n"}
    write_files(folder, facts | stale | {PAGE: html_of(watch_page(state))})
    return folder / PAGE


def _is_written(page: Path, key: str) -> bool:
    try:
        with page.open("rb") as stream:
            return f'content="{key}"'.encode() in stream.read(KEY_WITHIN)
    except OSError:
        return False
