"""What no schema can say: names that must exist, and values that contradict each other.

Each part of the file is read on its own, so that one bad row hides nothing of the others. Pins of a
row contradict each other by two versions for one package, or by a family's wrong packages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

import pydantic

from dsharness.matrix.series_graph import count_chains, find_cycle, graph_of
from dsharness.model import (
    AptPackages,
    Bootstrap,
    Defaults,
    DnfPackages,
    Family,
    KojiPackages,
    LdaploadWorkload,
    Matrix,
    PreinstalledPackages,
    Profile,
    Registry,
    Row,
    Series,
    Toolchain,
    Tools,
    Value,
    Workload,
    WorkloadFile,
)
from dsharness.package_version import upstream
from dsharness.products import product_of
from dsharness.products.catalog import known_of, stated_versions
from dsharness.yaml_files.problems import KeyPath, Problem, suggestion

Contradiction = tuple[tuple[str, ...], str | None, str]  # where in the row, value, what is allowed
HTTP = "https; or add `plain_http: true`: then anyone on the way can change what is read"


def untrusted(row: Row) -> Iterator[Contradiction]:
    """Yield plain http without its word, and words that say nothing where they stand."""
    if isinstance(row.base, Bootstrap):
        yield from _trusted_bootstrap(row.base)
    if isinstance(row.packages, DnfPackages | KojiPackages) and not row.packages.plain_http:
        yield from _repositories("packages", row.packages.repositories)
        if isinstance(row.packages, KojiPackages) and _plain(row.packages.url):
            yield ("packages", "url"), row.packages.url, HTTP


def _trusted_bootstrap(base: Bootstrap) -> Iterator[Contradiction]:
    if base.tool == "mmdebstrap":  # apt checks its signatures, also without https
        for name in ("keys", "unsigned", "plain_http"):
            if getattr(base, name):
                yield ("base", name), None, "only with `tool: dnf`"
        return
    if not base.repositories:
        yield ("base", "repositories"), None, "missing; `tool: dnf` has no other"
    if not base.plain_http:
        yield from _repositories("base", base.repositories)
        for url in filter(_plain, base.keys):
            yield ("base", "keys"), url, HTTP


def _repositories(where: str, urls: Mapping[str, str]) -> Iterator[Contradiction]:
    for name, url in urls.items():
        if _plain(url):
            yield (where, "repositories", name), url, HTTP


def _plain(url: str) -> bool:
    return url.lower().startswith("http:")


PACKAGES_OF = {
    Family.APT: ("apt",),
    Family.DNF: ("dnf", "koji", "preinstalled"),
    Family.EL8: ("dnf", "koji"),
    Family.FREEIPA: ("preinstalled",),
}
BOOTSTRAP_OF = {Family.APT: "mmdebstrap", Family.DNF: "dnf", Family.EL8: "dnf"}


def row_contradictions(index: int, row: Row) -> Iterator[Problem]:
    """Yield everything in one row that cannot be true together."""
    for checks in (_sources, _bootstrap, untrusted, _versions, _version_pins):
        for path, value, allowed in checks(row):
            yield Problem(path=("rows", index, *path), value=value, allowed=allowed)


def _sources(row: Row) -> Iterator[Contradiction]:
    kinds = PACKAGES_OF[row.family]
    if row.packages.kind not in kinds:
        allowed = f"{' or '.join(kinds)} with `family: {row.family}`"
        yield ("packages", "kind"), row.packages.kind, allowed
    if isinstance(row.packages, PreinstalledPackages) and not isinstance(row.base, Registry):
        yield (
            ("base", "kind"),
            row.base.kind,
            "registry with `packages: {kind: preinstalled}`: only a registry's image has them",
        )


def _bootstrap(row: Row) -> Iterator[Contradiction]:
    if not isinstance(row.base, Bootstrap):
        return
    tool = BOOTSTRAP_OF.get(row.family)
    if tool is not None and row.base.tool != tool:
        yield ("base", "tool"), row.base.tool, f"{tool} with `family: {row.family}`"
    elif row.base.tool == "mmdebstrap" and not isinstance(row.packages, AptPackages):
        yield (
            ("base", "tool"),
            row.base.tool,
            f"a base of debs cannot take `packages: {{kind: {row.packages.kind}}}`",
        )
    if row.base.tool == "mmdebstrap" and row.base.repositories:
        yield ("base", "repositories"), None, "only with `tool: dnf`; mmdebstrap takes `mirror`"


def _versions(row: Row) -> Iterator[Contradiction]:
    """Check versions of the row's product, and of what the row's driver may bring along."""
    facts, system = known_of(row), str(row.system)
    for name, version in row.versions.items():
        suite = facts.suites.get(name)
        if suite is None and name != product_of(row):
            allowed = (product_of(row), *facts.suites)
            expected = f"unknown key; allowed: {', '.join(allowed)}.{suggestion(name, allowed)}"
            yield ("versions", name), version, expected
        elif suite is not None and system not in suite.systems:
            expected = f"only with `system: {' or '.join(suite.systems)}`"
            yield (
                ("versions", name),
                version,
                f"{expected}; else it belongs in `published.versions`",
            )
    for name, suite in facts.suites.items():
        if system in suite.required_by and name not in row.versions:
            yield ("versions", name), None, f"missing; `system: {system}` needs it"
    for name in row.published.versions if row.published else ():
        if name not in facts.suites:
            expected = f"unknown key; allowed: {', '.join(facts.suites)}."
            yield ("published", "versions", name), None, expected + suggestion(name, facts.suites)
    if row.family is Family.FREEIPA and row.system != "freeipa":
        yield ("system",), str(row.system), "freeipa with `family: freeipa`"


def _version_pins(row: Row) -> Iterator[Contradiction]:
    """Two statements about one package's version must agree up to the release suffix."""
    stated = {
        package: (name, version)
        for name, (packages, version) in stated_versions(row).items()
        for package in packages
    }
    for package, (name, version) in stated.items():
        pin = row.pins.get(package)
        if pin is not None and upstream(pin) != upstream(version):
            yield ("pins", package), pin, f"{version}, as `versions.{name}` says"
    if isinstance(row.packages, KojiPackages):
        package, build, _ = row.packages.nvr.rsplit("-", 2)
        _, version_stated = stated.get(package, ("", None))
        if version_stated is not None and build != upstream(version_stated):
            expected = f"a build of {package} {version_stated} (`versions`)"
            yield ("packages", "nvr"), row.packages.nvr, expected
        pin = row.pins.get(package)
        if pin is not None and upstream(pin) != build:
            yield ("pins", package), pin, f"{build}, as `packages.nvr` says"


MAX_CHAINS = 1000  # each is searched on its own; the DAG of all releases has about fifteen


def order_findings(place: KeyPath, series: Series) -> Iterator[Problem]:
    """Yield what keeps one from searching along a series."""
    if series.rows and series.parents:
        yield Problem(
            path=place,
            value=series.id,
            allowed="both `rows` and `parents`; give `rows` for a line or `parents` for branches",
        )
    repeated = [row for row in dict.fromkeys(series.rows) if series.rows.count(row) > 1]
    if repeated:
        yield Problem(
            path=(*place, "rows"),
            value=", ".join(repeated),
            allowed="more than once in one series; each row once",
        )
        return
    graph = graph_of(series)
    if len(graph) < 2:
        yield Problem(
            path=place,
            value=series.id,
            allowed=f"a series of {len(graph)} rows has nothing to search; at least 2 are needed",
        )
    cycle = find_cycle(graph)
    if cycle is not None:
        yield Problem(
            path=(*place, "parents"),
            value=" -> ".join(cycle),
            allowed="a cycle; an order needs each row to come before its descendants only",
        )
    elif count_chains(graph) > MAX_CHAINS:
        yield Problem(
            path=(*place, "parents"),
            value=series.id,
            allowed=f"{count_chains(graph)} lines from root to leaf; at most {MAX_CHAINS}",
        )


def workload_contradictions(index: int, load: Workload) -> Iterator[Problem]:
    """Find what makes a load that cannot be applied as it says."""
    for name, allowed in load.contradictions():
        value = str(load.shown(name))
        yield Problem(path=("workloads", index, name), value=value, allowed=allowed)


V = TypeVar("V", bound=Value)
SECTIONS = ("sources", "rows", "series", "workloads", "settings", "toolchains", "profiles")
READ = ("rows", "series", "workloads", "toolchains", "profiles")  # of which the parts matter


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

    @classmethod
    def of(cls, matrix: Matrix) -> Self:
        """All of a matrix that has the right shape."""
        parts = {section: dict(enumerate(getattr(matrix, section))) for section in SECTIONS}
        return cls(
            ids={
                section: tuple((index, part.id) for index, part in of_it.items())
                for section, of_it in parts.items()
            },
            defaults=matrix.defaults,
            tools=matrix.tools,
            **{section: parts[section] for section in READ},
        )

    def known(self, section: str) -> tuple[str, ...]:
        return tuple(name for _, name in self.ids[section])


def draft_of(data: Mapping[str, object]) -> Draft:
    """Return what can be read of the data, however wrong the rest is."""
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
    """Return ids given twice, ids that do not exist, and series without an order."""
    problems = [*_duplicates(draft)]
    for path, name, section in _references(draft):
        ids = draft.known(section)
        if name not in ids:
            allowed = f"no such id in `{section}`; there are: {', '.join(ids)}."
            problems.append(Problem(path=path, value=name, allowed=allowed + suggestion(name, ids)))
    for index, series in draft.series.items():
        problems.extend(order_findings(("series", index), series))
    return problems


def contradiction_findings(draft: Draft) -> list[Problem]:
    """Return values that cannot be true together."""
    return [
        *(
            finding
            for index, row in draft.rows.items()
            for finding in row_contradictions(index, row)
        ),
        *(
            finding
            for index, load in draft.workloads.items()
            for finding in workload_contradictions(index, load)
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
    items = enumerate(_items(data, "workloads"))
    files = {i: _readable_or_none(WorkloadFile, {"workloads": [item]}) for i, item in items}
    return {index: file.workloads[0] for index, file in files.items() if file is not None}


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
    """Yield each place that names something, the name, and the section it must be in."""
    yield from _choices(draft)
    yield from _loads(draft)
    for index, toolchain in draft.toolchains.items():
        yield ("toolchains", index, "row"), toolchain.row, "rows"
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


def _loads(draft: Draft) -> Iterator[tuple[KeyPath, str, str]]:
    """Yield what profiles and workloads name."""
    for index, profile in draft.profiles.items():
        for place, name in enumerate(profile.workloads):
            yield ("profiles", index, "workloads", place), name, "workloads"
    for index, load in draft.workloads.items():
        if isinstance(load, LdaploadWorkload) and load.control is not None:
            yield ("workloads", index, "control"), load.control, "workloads"


def _choices(draft: Draft) -> Iterator[tuple[KeyPath, str, str]]:
    """Yield what `defaults` and `tools` name."""
    if draft.defaults is not None:
        yield ("defaults", "series"), draft.defaults.series, "series"
        yield ("defaults", "settings"), draft.defaults.settings, "settings"
        for index, name in enumerate(draft.defaults.workloads):
            yield ("defaults", "workloads", index), name, "workloads"
        for name in draft.defaults.suite:
            yield ("defaults", "suite", name), name, "workloads"
        if draft.defaults.profile is not None:
            yield ("defaults", "profile"), draft.defaults.profile, "profiles"
    if draft.tools is not None:
        for tool, row in draft.tools.loads.items():
            yield ("tools", "loads", tool), row, "rows"
        for key in ("cargo", "programs", "checks", "balancer"):
            if (toolchain := getattr(draft.tools, key)) is not None:
                yield ("tools", key), toolchain, "toolchains"
        if draft.tools.second is not None:
            yield ("tools", "second", "toolchain"), draft.tools.second.toolchain, "toolchains"
