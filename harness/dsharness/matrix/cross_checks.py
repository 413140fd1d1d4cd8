"""What no schema can say: names that must exist, and values that contradict each other.

Each part of the file is read on its own, so that one bad row hides nothing of the others.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import pydantic
from pydantic import TypeAdapter

from dsharness.matrix.pin_conflicts import row_contradictions
from dsharness.matrix.series_graph import count_chains, find_cycle, graph_of
from dsharness.model import (
    Defaults,
    Profile,
    Row,
    Series,
    Toolchain,
    Tools,
    Value,
    Workload,
)
from dsharness.yaml_files.problems import KeyPath, Problem, suggestion

MAX_CHAINS = 1000  # each is searched on its own; the DAG of all releases has about fifteen


def order_findings(at: KeyPath, series: Series) -> Iterator[Problem]:
    """What keeps one from searching along a series."""
    if series.rows and series.parents:
        yield Problem(
            path=at,
            value=series.id,
            allowed="both `rows` and `parents`; give `rows` for a line or `parents` for branches",
        )
    repeated = [row for row in dict.fromkeys(series.rows) if series.rows.count(row) > 1]
    if repeated:
        yield Problem(
            path=(*at, "rows"),
            value=", ".join(repeated),
            allowed="more than once in one series; each row once",
        )
        return
    graph = graph_of(series)
    if len(graph) < 2:
        yield Problem(
            path=at,
            value=series.id,
            allowed=f"a series of {len(graph)} rows has nothing to search; at least 2 are needed",
        )
    cycle = find_cycle(graph)
    if cycle is not None:
        yield Problem(
            path=(*at, "parents"),
            value=" -> ".join(cycle),
            allowed="a cycle; an order needs each row to come before its descendants only",
        )
    elif count_chains(graph) > MAX_CHAINS:
        yield Problem(
            path=(*at, "parents"),
            value=series.id,
            allowed=f"{count_chains(graph)} lines from root to leaf; at most {MAX_CHAINS}",
        )


def workload_contradictions(index: int, load: Workload) -> Iterator[Problem]:
    """Find what makes a load that cannot be applied as it says."""
    for name, allowed in load.contradictions():
        value = str(getattr(load, name))
        yield Problem(path=("workloads", index, name), value=value, allowed=allowed)


V = TypeVar("V", bound=Value)
SECTIONS = ("sources", "rows", "series", "workloads", "settings", "toolchains", "profiles")

ANY_WORKLOAD: TypeAdapter[Workload] = TypeAdapter(Workload)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The parts of a matrix that can be read, by their place; and every id, readable or not."""

    ids: Mapping[str, tuple[tuple[int, str], ...]]
    rows: Mapping[int, Row]
    series: Mapping[int, Series]
    workloads: Mapping[int, Workload]
    toolchains: Mapping[int, Toolchain]
    profiles: Mapping[int, Profile]
    defaults: Defaults | None
    tools: Tools | None

    def known(self, section: str) -> tuple[str, ...]:
        return tuple(name for _, name in self.ids[section])


def draft_of(data: Mapping[str, object]) -> Draft:
    """What can be read of the data, however wrong the rest is."""
    return Draft(
        ids={section: tuple(_ids(_items(data, section))) for section in SECTIONS},
        rows=_readable(Row, data, "rows"),
        series=_readable(Series, data, "series"),
        workloads=_readable_workloads(data),
        toolchains=_readable(Toolchain, data, "toolchains"),
        profiles=_readable(Profile, data, "profiles"),
        defaults=_readable_or_none(Defaults, data.get("defaults")),
        tools=_readable_or_none(Tools, data.get("tools")),
    )


def reference_findings(draft: Draft) -> list[Problem]:
    """Ids given twice, ids that do not exist, and series without an order."""
    found = [*_duplicates(draft)]
    for path, name, section in _references(draft):
        known = draft.known(section)
        if name not in known:
            allowed = f"no such id in `{section}`; there are: {', '.join(known)}."
            found.append(Problem(path=path, value=name, allowed=allowed + suggestion(name, known)))
    for index, series in draft.series.items():
        found.extend(order_findings(("series", index), series))
    return found


def contradiction_findings(draft: Draft) -> list[Problem]:
    """Values that cannot be true together."""
    return [
        *(finding for at, row in draft.rows.items() for finding in row_contradictions(at, row)),
        *(
            finding
            for at, load in draft.workloads.items()
            for finding in workload_contradictions(at, load)
        ),
    ]


def _items(data: Mapping[str, object], section: str) -> list[object]:
    items = data.get(section)
    return items if isinstance(items, list) else []


def _ids(items: Iterable[object]) -> Iterator[tuple[int, str]]:
    for index, item in enumerate(items):
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            yield index, item["id"]


def _readable(kind: type[V], data: Mapping[str, object], section: str) -> dict[int, V]:
    read = {i: _readable_or_none(kind, item) for i, item in enumerate(_items(data, section))}
    return {index: value for index, value in read.items() if value is not None}


def _readable_workloads(data: Mapping[str, object]) -> dict[int, Workload]:
    read = {}
    for index, item in enumerate(_items(data, "workloads")):
        with contextlib.suppress(pydantic.ValidationError):  # as in ``_readable_or_none``
            read[index] = ANY_WORKLOAD.validate_json(json.dumps(item), strict=True)
    return read


def _readable_or_none(kind: type[V], data: object) -> V | None:
    try:
        return kind.model_validate_json(json.dumps(data), strict=True)
    except pydantic.ValidationError:
        return None  # its shape is reported by ``matrix.shape``


def _duplicates(draft: Draft) -> Iterator[Problem]:
    for section, pairs in draft.ids.items():
        first: dict[str, int] = {}
        for index, name in pairs:
            if first.setdefault(name, index) != index:
                yield Problem(
                    path=(section, index, "id"),
                    value=name,
                    allowed=f"already the id of {section}[{first[name]}]; ids are unique",
                )


def _references(draft: Draft) -> Iterator[tuple[KeyPath, str, str]]:
    """Each place that names something, the name, and the section it must be in."""
    yield from _choices(draft)
    for index, toolchain in draft.toolchains.items():
        yield ("toolchains", index, "row"), toolchain.row, "rows"
    for index, profile in draft.profiles.items():
        for place, name in enumerate(profile.workloads):
            yield ("profiles", index, "workloads", place), name, "workloads"
    for index, row in draft.rows.items():
        if row.published is not None:
            yield ("rows", index, "published", "source"), row.published.source, "sources"
    for index, series in draft.series.items():
        for place, name in enumerate(series.rows):
            yield ("series", index, "rows", place), name, "rows"
        for child, parents in series.parents.items():
            yield ("series", index, "parents", child), child, "rows"
            for place, name in enumerate(parents):
                yield ("series", index, "parents", child, place), name, "rows"


def _choices(draft: Draft) -> Iterator[tuple[KeyPath, str, str]]:
    """What `defaults` and `tools` name."""
    if draft.defaults is not None:
        yield ("defaults", "series"), draft.defaults.series, "series"
        yield ("defaults", "settings"), draft.defaults.settings, "settings"
        for index, name in enumerate(draft.defaults.workloads):
            yield ("defaults", "workloads", index), name, "workloads"
        if draft.defaults.profile is not None:
            yield ("defaults", "profile"), draft.defaults.profile, "profiles"
    if draft.tools is not None:
        for tool, row in draft.tools.loads.items():
            yield ("tools", "loads", tool), row, "rows"
        if draft.tools.cargo is not None:
            yield ("tools", "cargo"), draft.tools.cargo, "toolchains"
        if draft.tools.checks is not None:
            yield ("tools", "checks"), draft.tools.checks, "toolchains"
