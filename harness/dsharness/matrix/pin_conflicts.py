"""Pins that contradict each other: two versions for one package, a family's wrong packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsharness.model import (
    AptPackages,
    Bootstrap,
    DnfPackages,
    Family,
    KojiPackages,
    PreinstalledPackages,
    Registry,
    Row,
    SystemName,
)
from dsharness.package_version import upstream
from dsharness.products import product_of
from dsharness.products.catalog import known_of, stated_versions
from dsharness.yaml_files.problems import Problem, suggestion

Contradiction = tuple[tuple[str, ...], str | None, str]  # where in the row, value, what is allowed
HTTP = "https; or add `plain_http: true`: then anyone on the way can change what is read"


def untrusted(row: Row) -> Iterator[Contradiction]:
    """Plain http without its word, and words that say nothing where they stand."""
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
BOOTSTRAP_OF = {
    Family.APT: "mmdebstrap",
    Family.DNF: "dnf",
    Family.EL8: "dnf",
}


def row_contradictions(index: int, row: Row) -> Iterator[Problem]:
    """Everything in one row that cannot be true together."""
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
    """Of the row's product, and of what the row's driver may bring along."""
    known, system = known_of(row), str(row.system)
    for name, version in row.versions.items():
        suite = known.suites.get(name)
        if suite is None and name != product_of(row):
            allowed = (product_of(row), *known.suites)
            expected = f"unknown key; allowed: {', '.join(allowed)}.{suggestion(name, allowed)}"
            yield ("versions", name), version, expected
        elif suite is not None and system not in suite.systems:
            expected = f"only with `system: {' or '.join(suite.systems)}`"
            yield (
                ("versions", name),
                version,
                f"{expected}; else it belongs in `published.versions`",
            )
    for name, suite in known.suites.items():
        if system in suite.required_by and name not in row.versions:
            yield ("versions", name), None, f"missing; `system: {system}` needs it"
    for name in row.published.versions if row.published else ():
        if name not in known.suites:
            expected = f"unknown key; allowed: {', '.join(known.suites)}."
            yield ("published", "versions", name), None, expected + suggestion(name, known.suites)
    if row.family is Family.FREEIPA and row.system is not SystemName.FREEIPA:
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
        _, wanted = stated.get(package, ("", None))
        if wanted is not None and build != upstream(wanted):
            expected = f"a build of {package} {wanted} (`versions`)"
            yield ("packages", "nvr"), row.packages.nvr, expected
        pin = row.pins.get(package)
        if pin is not None and upstream(pin) != build:
            yield ("pins", package), pin, f"{build}, as `packages.nvr` says"
