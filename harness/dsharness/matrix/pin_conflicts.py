"""Pins that contradict each other: two versions for one package, a family's wrong packages."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.matrix.trust import Contradiction, untrusted
from dsharness.model import (
    AptPackages,
    Bootstrap,
    Family,
    KojiPackages,
    LdcltWorkload,
    PreinstalledPackages,
    Registry,
    Row,
    SystemName,
    UserOrder,
    Workload,
)
from dsharness.package_version import upstream
from dsharness.yaml_files.problems import Problem

DIRSRV = "389-ds-base"
PACKAGES_OF = {
    Family.APT: ("apt",),
    Family.DNF: ("dnf", "koji"),
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
    for checks in (_sources, _bootstrap, untrusted, _servers, _version_pins):
        for path, value, allowed in checks(row):
            yield Problem(path=("rows", index, *path), value=value, allowed=allowed)


def workload_contradictions(index: int, load: Workload) -> Iterator[Problem]:
    """A load that binds as users it does not have, or walks over one user at random."""
    if not isinstance(load, LdcltWorkload):
        return
    at = ("workloads", index, "distinct_users")
    if load.distinct_users > load.users:
        yield Problem(
            path=at,
            value=str(load.distinct_users),
            allowed=f"at most the {load.users} users that are seeded (`users`)",
        )
    if load.order is UserOrder.REPEAT and load.distinct_users > 1:
        yield Problem(
            path=at,
            value=str(load.distinct_users),
            allowed="1 with `order: repeat`, which binds one user again and again",
        )


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


def _servers(row: Row) -> Iterator[Contradiction]:
    versions, system = row.versions, row.system
    if versions.freeipa is not None and system is SystemName.DIRSRV:
        yield (
            ("versions", "freeipa"),
            versions.freeipa,
            "only with `system: freeipa` or `aldpro`; else it belongs in `published.freeipa`",
        )
    if versions.aldpro is not None and system is not SystemName.ALDPRO:
        yield ("versions", "aldpro"), versions.aldpro, "only with `system: aldpro`"
    if system is SystemName.FREEIPA and versions.freeipa is None:
        yield ("versions", "freeipa"), None, "missing; `system: freeipa` needs it"
    if system is SystemName.ALDPRO and versions.aldpro is None:
        yield ("versions", "aldpro"), None, "missing; `system: aldpro` needs it"
    if row.family is Family.FREEIPA and system is SystemName.DIRSRV:
        yield ("system",), str(system), "freeipa with `family: freeipa`"


def _version_pins(row: Row) -> Iterator[Contradiction]:
    """Two statements about one package's version must agree up to the release suffix."""
    stated = {DIRSRV: row.versions.dirsrv, "freeipa": row.versions.freeipa}
    pin = row.pins.get(DIRSRV)
    wanted = stated[DIRSRV]
    if pin is not None and wanted is not None and upstream(pin) != upstream(wanted):
        yield ("pins", DIRSRV), pin, f"{wanted}, as `versions.dirsrv` says"
    if isinstance(row.packages, KojiPackages):
        name, version, _ = row.packages.nvr.rsplit("-", 2)
        wanted = stated.get(name)
        if wanted is not None and version != upstream(wanted):
            yield ("packages", "nvr"), row.packages.nvr, f"a build of {name} {wanted} (`versions`)"
        pin = row.pins.get(name)
        if pin is not None and upstream(pin) != version:
            yield ("pins", name), pin, f"{version}, as `packages.nvr` says"
