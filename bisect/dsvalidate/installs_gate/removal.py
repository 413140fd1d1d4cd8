"""Removing the packages: what the patched ones leave behind that stock ones do not."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from dsbuilds.drivers.package_build import repository_of
from dsvalidate.check import Check, Gate, Status
from dsvalidate.installs_gate.package_change import (
    Changed,
    changeable,
    files_of,
    patched_names,
    remove,
    stock_names,
)
from dsvalidate.sides import Sides
from dsvalidate.step_tools import EvidenceFolder, StepTools
from dsvalidate.suite import Suite

NAME = "removal"
SHOWN = 40


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite) -> list[Check]:
    """Remove the packages of a filled stock system, and of the upgraded one."""
    upgraded = suite.upgraded_image(sides, tools, evidence)
    if upgraded is None:
        return [_check(Status.NOT_RUN, "the upgrade left no packages to remove")]
    tools.progress("removing the stock packages")
    stock = suite.filled(tools, sides.stock)
    by_stock, left_by_stock = _removed(suite, sides, tools, stock, stock_names(sides))
    tools.progress("removing the patched packages")
    by_patched, left_by_patched = _removed(suite, sides, tools, upgraded, patched_names(sides))
    log = evidence.keep("removal-packages.txt", f"{by_stock.done}\n{by_patched.done}")
    if not by_patched.ok:
        return [_failed(by_stock, by_patched, log)]
    names = ", ".join(patched_names(sides))
    return [leftovers_check(left_by_stock, left_by_patched, names, log)]


def _removed(
    suite: Suite, sides: Sides, tools: StepTools, reference: str, names: dict[str, str]
) -> tuple[Changed, frozenset[str]]:
    packages = repository_of(sides.build)
    with changeable(suite.served, tools, reference, packages, purpose=NAME) as server:
        changed = remove(server.box, names)
        return changed, files_of(server.box) if changed.ok else frozenset()


def leftovers_check(
    by_stock: AbstractSet[str], by_patched: AbstractSet[str], names: str, log: str
) -> Check:
    """Warn of new leftovers: stock's own are the distribution's."""
    new = new_leftovers(by_stock, by_patched)
    if not new:
        found = f"{names} were removed, and nothing stayed that stock would not leave"
        return _check(Status.PASSED, found, evidence=(log,))
    return _check(
        Status.WARNED,
        f"after the removal {len(new)} paths more than with stock stay: {', '.join(new[:3])}",
        advice="Remove them in the package's removal script, or list them as its files.",
        details=new[:SHOWN], evidence=(log,),
    )  # fmt: skip


def new_leftovers(by_stock: AbstractSet[str], by_patched: AbstractSet[str]) -> tuple[str, ...]:
    """The topmost of the new paths; what lies below goes with them."""
    new = by_patched - by_stock
    return tuple(sorted(path for path in new if str(Path(path).parent) not in new))


def _failed(by_stock: Changed, by_patched: Changed, log: str) -> Check:
    if not by_stock.ok:
        found = f"neither stock nor patched packages can be removed here: {by_stock.why}"
        return _check(Status.NOT_RUN, found, details=by_stock.last_lines, evidence=(log,))
    return _check(
        Status.FAILED, f"the patched packages cannot be removed: {by_patched.why}",
        advice="Its output names the script of the package that fails.",
        details=by_patched.last_lines, evidence=(log,),
    )  # fmt: skip


def _check(
    status: Status,
    found: str,
    *,
    advice: str = "",
    details: tuple[str, ...] = (),
    evidence: tuple[str, ...] = (),
) -> Check:
    return Check(
        gate=Gate.INSTALLS, name=NAME, status=status, found=found, advice=advice,
        details=details, evidence=evidence,
    )  # fmt: skip
