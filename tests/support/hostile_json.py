"""JSON that someone else wrote: a real document with a few of its places changed."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Json = Any


def drawn(for_each_change: int, for_all: int) -> settings:
    """So many examples, which take seconds; where every test is run, minutes."""
    least = settings.default.max_examples <= 10
    return settings(
        max_examples=for_each_change if least else for_all,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


DEEP: Json = []
for _ in range(300):
    DEEP = [DEEP]

WRONG: st.SearchStrategy[Json] = st.sampled_from(
    [
        None, True, False, 0, -1, 1, 2, -7.5, 0.0, 1e-320, 1e17, -1e17, 1e308, 2**31, 2**63,
        -(2**63), 10**30, "", "x", "nan", "\0", "\ud800", "\x1b[2J", "../../x", "<script>",
        "javascript:alert(1)", "9" * 5000,
        "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-11-28", "e" * 70_000,
        [], {}, ["x"], {"x": 1}, [[]], [-1.0], [None], DEEP,
    ]
).map(copy.deepcopy)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, documents: list[Json], most: int = 3) -> Json:
    """One of the documents, in which up to so many places hold something else, or are gone."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, most))):
        _change(draw, document)
    return document


def _change(draw: st.DrawFn, document: Json) -> None:
    holder = document
    while True:
        places = list(holder) if isinstance(holder, dict) else range(len(holder))
        if not places:
            return
        place = draw(st.sampled_from(places))
        inner = holder[place]
        if isinstance(inner, dict | list) and inner and draw(st.integers(0, 4)):
            holder = inner
            continue
        match draw(st.integers(0, 9)):
            case 0:
                del holder[place]
            case 1 if isinstance(holder, dict):
                holder["further"] = draw(WRONG)
            case 2 if isinstance(inner, int | float) and not isinstance(inner, bool):
                holder[place] = -inner
            case _:
                holder[place] = draw(WRONG)
        return
