"""Claims as one page of answers and as text; its picture is the rate over distinct users."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from dsharness.model import Value
from dsresults.compare.bind_lines import BindFigures, BindLine
from dsresults.compare.claim_outcomes import ClaimAnswer, ClaimsAnswer
from dsresults.number_text import milliseconds, significant, whole
from dsresults.page_files import page_environment, utc, write_files
from dsresults.report.percentile_chart import (
    MOST_LINES,
    AxisMark,
    PlotArea,
    points_text,
    round_values,
    spread,
)

AREA = PlotArea(width=700.0, right=470.0)
WIDER = 1.3  # than the lowest and highest rate


class UsersLine(Value):
    """One arm, as drawn."""

    pattern: int
    name: str
    title: str
    points: str
    dots: tuple[tuple[float, float], ...]
    end_x: float
    end_y: float
    name_y: float


class UsersChart(Value):
    """Binds a second over the number of distinct users, both on log axes."""

    title: str
    description: str
    users: tuple[AxisMark, ...]
    rates: tuple[AxisMark, ...]
    lines: tuple[UsersLine, ...]
    left_out: int


class UsersScale(Value):
    """Where a number of users and a rate stand."""

    most: int
    low: float
    high: float

    def place(self, users: int, rate: float) -> tuple[float, float]:
        share = math.log(users) / (math.log(self.most) or 1.0)
        height = math.log(rate / self.low) / math.log(self.high / self.low)
        return (
            round(AREA.left + (AREA.right - AREA.left) * share, 1),
            round(AREA.bottom - (AREA.bottom - AREA.top) * height, 1),
        )


def users_chart(figures: BindFigures) -> UsersChart | None:
    """None where there is nothing to draw over users."""
    known = [line for line in figures.lines if len(line.points) > 1]
    drawn = known[:MOST_LINES]
    if not drawn:
        return None
    rates = [point.rate_per_s for line in drawn for point in line.points]
    users = sorted({point.users for line in drawn for point in line.points})
    scale = UsersScale(most=users[-1], low=min(rates) / WIDER, high=max(rates) * WIDER)
    return UsersChart(
        title="Binds a second over the number of distinct users",
        description="; ".join(map(_told_line, drawn)),
        users=tuple(
            AxisMark(at=scale.place(number, scale.high)[0], label=whole(number)) for number in users
        ),
        rates=tuple(
            AxisMark(at=scale.place(1, rate)[1], label=f"{whole(rate)}/s")
            for rate in round_values(scale.low, scale.high)
        ),
        lines=_lines(drawn, scale),
        left_out=len(known) - len(drawn),
    )


def _lines(drawn: list[BindLine], scale: UsersScale) -> tuple[UsersLine, ...]:
    places = [
        [scale.place(point.users, point.rate_per_s) for point in line.points] for line in drawn
    ]
    names = spread([each[-1][1] for each in places])
    return tuple(
        UsersLine(
            pattern=pattern,
            name=line.title,
            title=_told_line(line),
            points=points_text(each),
            dots=tuple(each),
            end_x=each[-1][0],
            end_y=each[-1][1],
            name_y=name_y,
        )
        for pattern, (line, each, name_y) in enumerate(zip(drawn, places, names, strict=True))
    )


def _told_line(line: BindLine) -> str:
    rates = ", ".join(f"{point.users}: {significant(point.rate_per_s)}/s" for point in line.points)
    return f"{line.title}: {rates}"


def render_claims(found: ClaimsAnswer) -> str:
    """The whole page as one HTML document."""
    environment = page_environment()
    environment.filters.update(significant=significant, utc=utc, ms=milliseconds, whole=whole)
    chart = users_chart(found.users) if found.users else None
    return environment.get_template("claims.html.jinja").render(found=found, chart=chart, area=AREA)


def write_claims(folder: Path, found: ClaimsAnswer) -> Path:
    """Write claims.json and claims.html, each completely or not at all; the page's path."""
    page, html = folder / "claims.html", render_claims(found)
    write_files(folder, {"claims.json": found.model_dump_json(indent=2) + "\n", page.name: html})
    return page


def told(found: ClaimsAnswer) -> Iterator[str]:
    """The answers first, then the rates that most of them rest on."""
    yield f"{found.title}: {found.summary}"
    for claim in found.claims:
        yield ""
        yield from _told_claim(claim)
    if found.users:
        yield "\nbinds a second with so many distinct users:"
        yield from rate_table(found.users)
    if found.reached:
        yield f"\npublished rows that were measured: {', '.join(found.reached)}"
    if found.unreached:
        yield "\npublished rows that could not be had here:"
        yield from (f"  {each.row}: {each.why}" for each in found.unreached)
    yield ""


def _told_claim(claim: ClaimAnswer) -> Iterator[str]:
    yield f"{claim.id}: {claim.verdict}"
    yield f"  {claim.answer}"
    yield f"  published: {claim.text} ({claim.theirs})"
    if claim.ours != "-":
        yield f"  here: {claim.ours}"
    if claim.flips:
        yield f"  changes: {'; '.join(claim.flips)}"
    yield from (f"  {detail}" for detail in claim.details)
    if claim.command:
        yield f"  again: {claim.command}"
    if claim.elsewhere:
        yield f"  elsewhere: {claim.elsewhere}"


def rate_table(figures: BindFigures) -> Iterator[str]:
    """A line for each arm."""
    lines = [line for line in figures.lines if line.points]
    users = sorted({point.users for line in lines for point in line.points})
    width = max((len(line.title) for line in lines), default=0)
    yield "  " + " " * width + "".join(f"{whole(number):>9}" for number in users)
    for line in lines:
        known = (line.at(number) for number in users)
        cells = "".join(f"{significant(each.rate_per_s) if each else '-':>9}" for each in known)
        yield f"  {line.title:{width}}{cells}  {line.stored}"
