"""The picture of an answer as it is drawn: values above, chances below, names at the foot."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from dsresults.number_text import chance_text
from dsresults.page.chart import Chart, box, dot, label, line, shape
from dsresults.report.answer_picture import AREA, LETTER, Edge, Picture, Place


def answer_chart(picture: Picture) -> Chart:
    """Return the picture as it is drawn."""
    return Chart(
        title=picture.title,
        description=picture.description,
        width=AREA.width,
        height=picture.height,
        workload=picture.workload_id,
        kind="picture",
        shapes=(
            *_band(picture),
            label(0, 15, picture.title, "title"),
            *AREA.up(picture.axis),
            *_factors(picture),
            AREA.foot(),
            *_edge_mark(picture),
            *_chances(picture),
            *(_drawn_place(picture, place) for place in picture.places),
        ),
    )


def _factors(picture: Picture) -> Iterator[Element]:
    """What the heights are as so many times the first end."""
    if picture.factors:
        yield label(0, 32, f"on the right: so many times {picture.reference}", "tick")
    for y, words in picture.factors:
        yield label(AREA.right + 7, y + 4.5, words, "tick")


def _band(picture: Picture) -> Iterator[Element]:
    edge, top = picture.edge, AREA.top - 8
    if edge and edge.end_x > edge.x:
        yield box(edge.x, top, edge.end_x - edge.x, picture.foot - top, "band")
        yield line(edge.end_x, top, edge.end_x, picture.foot, "boundary")


def _chances(picture: Picture) -> Iterator[Element]:
    if picture.believed:
        for y, words, kind in (
            (AREA.chance_top, "100 %", "grid"),
            (AREA.chance_bottom, "0", "axis"),
        ):
            yield line(AREA.left, y, AREA.right, y, kind)
            yield label(AREA.left - 7, y + 4.5, words, "tick", "end")
        what = "chance that a change is here"
        yield label(AREA.left, AREA.chance_top - 26, what, "tick told")


def _edge_mark(picture: Picture) -> Iterator[Element]:
    if edge := picture.edge:
        yield line(edge.x, AREA.top - 29, edge.x, picture.foot, "boundary")
        yield _edge_label(edge, AREA.top - 18)
    end = -math.inf
    for edge in sorted(picture.second_edges, key=lambda edge: edge.x):
        yield line(edge.x, AREA.top, edge.x, picture.foot, "boundary")
        width = LETTER * len(edge.label)
        begin = edge.x if edge.label_side == "start" else edge.x - width
        if begin > end:  # no label is on another
            yield _edge_label(edge, AREA.bottom + 11)
        end = max(end, begin + width)


def _edge_label(edge: Edge, y: float) -> Element:
    x = edge.x + (6 if edge.label_side == "start" else -6)
    return label(x, y, edge.label, "boundary-label", edge.label_side)


def _drawn_place(picture: Picture, place: Place) -> Element:
    """A candidate's column, with all that a reader who points at it is told."""
    title = place.title
    if picture.believed and not place.left_out:
        title = f"{title}; chance that a change is here: {chance_text(place.chance)}"
    return shape(
        "g",
        box(place.x - picture.slot / 2, AREA.top, picture.slot, picture.foot - AREA.top, "reach"),
        *([line(place.x, AREA.top, place.x, AREA.bottom, "gap")] if place.left_out else []),
        *_value(picture, place),
        *_chance_bar(picture, place),
        *_name(picture, place),
        kind="place",
        title=title,
    )


def _value(picture: Picture, place: Place) -> Iterator[Element]:
    """Samples, interval and value."""
    aside = 10 if picture.slot > 40 else 5
    for number, sample in enumerate(place.dots):
        x = round(place.x + aside + (3 if number % 2 else 0), 1)
        yield dot(x, sample.y, 2.6, "dot", f"{place.candidate}, {sample.title}")
    kind = place.outcome.value
    if place.y is not None and place.low is not None and place.high is not None:
        yield line(place.x, place.low, place.x, place.high, f"interval {kind}")
        yield _mark(place.x, place.y, kind)
    if place.label and place.label_side:
        tops = [place.highest, place.high or place.highest, (place.y or place.highest) - 4]
        yield label(place.x, min(tops) - 9, place.label, "value", place.label_side)


def _mark(x: float, y: float, kind: str) -> Element:
    """A form of its own for each outcome, for who sees no colours."""
    if kind == "fast":
        return dot(x, y, 6.5, "mark fast")
    if kind == "slow":
        return box(x - 6, y - 6, 12, 12, "mark slow")
    turned = f"M{x:g} {y - 7.5:g}l7.5 7.5l-7.5 7.5l-7.5 -7.5z"
    return shape("path", d=turned, kind="mark inconclusive")


def _chance_bar(picture: Picture, place: Place) -> Iterator[Element]:
    if picture.believed and place.chance > 0:
        half = min(picture.slot * 0.3, 24)
        yield box(place.x - half, place.bar_y, 2 * half, place.bar_height, "chance")
        if place.chance >= 0.005 and picture.slot >= 44:
            yield label(place.x, place.bar_y - 5, chance_text(place.chance), "tick", "middle")


def _name(picture: Picture, place: Place) -> Iterator[Element]:
    """The candidate's name with its version below, or both slanted."""
    kind = "name left-out" if place.left_out else "name"
    if picture.slanted:
        turned = f"translate({place.x + 4:g} {picture.foot + 14:g}) rotate(-45)"
        yield shape("text", place.whole_name, transform=turned, kind=kind, text_anchor="end")
        return
    yield label(place.x, picture.foot + 19, place.name, kind, "middle")
    if place.version:
        yield label(place.x, picture.foot + 36, place.version, "tick", "middle")
