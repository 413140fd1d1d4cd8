"""Step "abi": what libraries offer to others and what they link, stock against patched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsbisect.validate.builds_gate.library_interfaces import (
    Change,
    Program,
    change_of,
    debug_information,
    gone,
    linked_by_others,
    needed_changes,
    programs,
)
from dsbisect.validate.builds_gate.lint import no_stock_check
from dsbisect.validate.builds_gate.trial_packages import also_in_stock
from dsbisect.validate.check import Check, Gate, Status, listed
from dsbisect.validate.stock_packages import stock_packages
from dsbisect.validate.tool_output import tool_output
from dsbisect.validate.trial import Trial
from dsbuilds.drivers.package_build import repository_of
from dsharness.errors import PackageError, RefusedError

NAME = "abi"
SHOWN = 20
SYMBOLS_ONLY = (
    " Only symbols were compared: without debug information in both, a changed type is not seen."
)


def checks(trial: Trial) -> tuple[Check, ...]:
    """Libraries that others link, plugins, and what all of them link."""
    try:
        stock = stock_packages(trial)
    except (PackageError, RefusedError) as error:
        return (no_stock_check(NAME, error),)
    said = tool_output(
        trial, "compare-abi", *(each.file for each in also_in_stock(trial)),
        folders={"/stock": stock, "/patched": repository_of(trial.build)},
    )  # fmt: skip
    before, after = programs(said["stock.tsv"]), programs(said["patched.tsv"])
    changes = _changes(said, before)
    evidence = (trial.keep(f"{NAME}.txt", _reports(said)),)
    return (*interface_checks(changes, before, after, evidence), needed_check(before, after))


def interface_checks(
    changes: Sequence[Change],
    stock: Mapping[str, Program],
    patched: Mapping[str, Program],
    evidence: tuple[str, ...],
) -> tuple[Check, Check]:
    """A library that others link must keep what it offers; a plugin is only looked up by name."""
    users = linked_by_others(stock)
    note = "" if debug_information(stock, patched) else SYMBOLS_ONLY
    shared = [each for each in changes if each.path in users]
    plugins = [each for each in changes if each.path not in users]
    return (
        _interface_check(
            NAME, "libraries that other files link", shared, Status.FAILED, note, evidence,
            "Programs and plugins of others call these: keep them, or give the library a new "
            "SONAME and rebuild everything that links it.",
        ),
        _interface_check(
            "plugin-abi", "plugins", plugins, Status.WARNED, note, evidence,
            "The server finds a plugin's entry by its name: see that no configuration names "
            "what is gone.",
        ),
    )  # fmt: skip


def needed_check(stock: Mapping[str, Program], patched: Mapping[str, Program]) -> Check:
    """Libraries that are linked now and were not, or no longer."""
    new, left = needed_changes(stock, patched)
    linked = len({name for each in patched.values() for name in each.needed})
    changed = [*(f"{name} is new" for name in new), *(f"{name} is gone" for name in left)]
    return Check(
        gate=Gate.BUILDS,
        name="linked-libraries",
        status=Status.WARNED if changed else Status.PASSED,
        found=f"Of the libraries that {len(patched)} programs and libraries link, "
        f"{listed(changed, SHOWN)}."
        if changed
        else f"{len(patched)} programs and libraries link the same {linked} libraries as in stock.",
        advice="Each new library is code that the server now depends on: see that the package "
        "depends on it, and that it is supported as long as the server is."
        if changed
        else "",
        figures={"new": len(new), "gone": len(left)},
        details=tuple(
            f"{name}: {word} {listed(users, SHOWN)}"
            for word, side in (("now linked by", new), ("no longer linked by", left))
            for name, users in side.items()
        ),
    )


def _interface_check(
    name: str,
    what: str,
    changes: Sequence[Change],
    if_broken: Status,
    note: str,
    evidence: tuple[str, ...],
    advice: str,
) -> Check:
    broken = [each for each in changes if each.breaks]
    trouble = [each for each in changes if each.trouble]
    added = sum(len(each.added) for each in changes)
    if broken:
        status = if_broken
        said = "; ".join(_broken(each) for each in broken)
    elif trouble:
        status, said = Status.WARNED, f"{trouble[0].path}: {trouble[0].trouble}"
        advice = "Compare these libraries by hand."
    else:
        status, advice = Status.PASSED, ""
        more = f", and {added} more" if added else ""
        said = f"{len(changes)} of {len(changes)} {what} offer all that the stock ones do{more}"
    return Check(
        gate=Gate.BUILDS,
        name=name,
        status=status,
        found=f"{said}.{note}",
        advice=advice,
        figures={
            "compared": len(changes),
            "removed": sum(len(each.removed) for each in changes),
            "changed": sum(len(each.changed) for each in changes),
            "added": added,
        },
        details=tuple(line for each in changes for line in _lines(each)),
        evidence=evidence,
    )


def _broken(change: Change) -> str:
    parts = [
        f"{verb} {listed(names, SHOWN)}"
        for verb, names in (("lost", change.removed), ("changed", change.changed))
        if names
    ]
    return f"{change.path.rpartition('/')[2]} {' and '.join(parts)}"


def _lines(change: Change) -> list[str]:
    found = [
        f"{change.path}: {verb} {name}"
        for verb, names in (
            ("removed", change.removed),
            ("changed", change.changed),
            ("added", change.added),
        )
        for name in names
    ]
    if change.rust_names:
        found.append(
            f"{change.path}: {change.rust_names} names that Rust's compiler made up differ; "
            "nothing links them by name"
        )
    return [*found, *([f"{change.path}: {change.trouble}"] if change.trouble else [])]


def _changes(said: Mapping[str, str], stock: Mapping[str, Program]) -> list[Change]:
    compared = _compared(said)
    found = [
        change_of(before, int(status), said.get(report, ""))
        for before, _, status, report in compared
    ]
    return [*found, *gone(stock, [row[0] for row in compared])]


def _compared(said: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    rows = [line.split("\t") for line in said.get("compared.tsv", "").splitlines()]
    return [(r[0], r[1], r[2], r[3]) for r in rows if len(r) == 4 and r[2].isdecimal()]


def _reports(said: Mapping[str, str]) -> str:
    return "\n".join(
        f"{before} -> {after}: status {status}\n{said.get(report, '')}"
        for before, after, status, report in _compared(said)
    )
