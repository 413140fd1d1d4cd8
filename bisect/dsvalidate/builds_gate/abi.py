"""Step "abi": what libraries offer to others and what they link, stock against patched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dsbuilds.drivers.package_build import repository_of
from dsharness.errors import PackageError, RefusedError
from dsvalidate.builds_gate.lint import no_stock_check
from dsvalidate.builds_gate.made_packages import also_in_stock
from dsvalidate.check import Check, Gate, Status, listed
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, stock_packages

CHANGE = re.compile(r"^\s+\[(?P<kind>[DAC])\] (?P<what>.+?)\s*$", re.MULTILINE)
SONAME = re.compile(r"SONAME changed from '(?P<old>[^']*)' to '(?P<new>[^']*)'")
SYMBOL = re.compile(r"\{(?P<symbol>[^{},]+)[^{}]*\}$")
# Rust's own names end in a hash, which is another one for each build's circumstances.
RUST = re.compile(r"_ZN.*17h[0-9a-f]{16}E|_R[A-Za-z0-9_]{8,}")
BROKEN = 3  # of abidiff's status, these bits: it could not compare


@dataclass(frozen=True, kw_only=True)
class Program:
    """A library or program of a package."""

    path: str
    soname: str
    debug: bool
    needed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LibraryChange:
    """What became of one library."""

    path: str
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    rust_names: int = 0  # Rust's own, removed and added: not counted above
    trouble: str = ""  # why it could not be compared

    @property
    def breaks(self) -> bool:
        """Whether something that was linked with the old one may not work with the new one."""
        return bool(self.removed or self.changed)


def programs(table: str) -> dict[str, Program]:
    """Read what the script said of each ELF file, by path."""
    rows = [line.split("\t") for line in table.splitlines()]
    programs_read = (
        Program(path=row[0], soname=row[1], debug=row[2] == "yes", needed=_words(row[3]))
        for row in rows
        if len(row) == 4
    )
    return {program.path: program for program in programs_read}


def change_of(path: str, status: int, report: str) -> LibraryChange:
    """Read one report of abidiff."""
    if status & BROKEN or status > 15:
        last = (report.strip().splitlines() or ["it said nothing"])[-1]
        return LibraryChange(path=path, trouble=f"abidiff ended with status {status}: {last[:200]}")
    kinds: dict[str, list[str]] = {"D": [], "A": [], "C": []}
    rust = 0
    for match in CHANGE.finditer(report):
        name = _short(match["what"])
        if RUST.fullmatch(name.partition("@")[0]):
            rust += 1
        elif name not in kinds[match["kind"]]:
            kinds[match["kind"]].append(name)
    renamed = SONAME.search(report)
    if renamed is not None:
        kinds["C"].insert(0, f"its SONAME, from {renamed['old']} to {renamed['new']}")
    return LibraryChange(
        path=path,
        removed=tuple(kinds["D"]),
        changed=tuple(kinds["C"]),
        added=tuple(kinds["A"]),
        rust_names=rust,
    )


def gone(stock: Iterable[str], compared: Iterable[str]) -> tuple[LibraryChange, ...]:
    """List the stock libraries that the patched packages do not have."""
    libraries = sorted({path for path in stock if ".so" in path} - set(compared))
    return tuple(LibraryChange(path=path, removed=("the whole library",)) for path in libraries)


def linked_by_others(stock: Mapping[str, Program]) -> dict[str, int]:
    """Count, by path, the packages' files that are linked with it: an interface for others too."""
    users = {
        change.path: sum(change.soname in user.needed for user in stock.values())
        for change in stock.values()
        if change.soname
    }
    return {path: count for path, count in users.items() if count}


def needed_changes(
    stock: Mapping[str, Program], patched: Mapping[str, Program]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Libraries that are linked now and were not, and the other way round, each with by what."""
    before, after = _users(stock), _users(patched)
    return (
        {name: after[name] for name in sorted(after.keys() - before.keys())},
        {name: before[name] for name in sorted(before.keys() - after.keys())},
    )


def debug_information(stock: Mapping[str, Program], patched: Mapping[str, Program]) -> bool:
    """Whether both sides have it, so that types are compared too."""
    return all(any(program.debug for program in side.values()) for side in (stock, patched))


def _users(side: Mapping[str, Program]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for program in side.values():
        for name in program.needed:
            users.setdefault(name, []).append(program.path.rpartition("/")[2])
    return users


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _short(text: str) -> str:
    """The symbol alone where abidiff names it: 'function int f(int)'    {f} -> f."""
    symbol = SYMBOL.search(text)
    return symbol["symbol"] if symbol else text


NAME = "abi"
SHOWN = 20
SYMBOLS_ONLY = (
    " Only symbols were compared: without debug information in both, a changed type is not seen."
)


def checks(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Check, ...]:
    """Libraries that others link, plugins, and what all of them link."""
    try:
        stock = stock_packages(sides, tools)
    except (PackageError, RefusedError) as error:
        return (no_stock_check(NAME, error),)
    texts = tools.packages.texts(
        "compare-abi",
        *(package.file for package in also_in_stock(sides)),
        folders={"/stock": stock, "/patched": repository_of(sides.build)},
    )
    before, after = programs(texts["stock.tsv"]), programs(texts["patched.tsv"])
    changes = _changes(texts, before)
    reports = (evidence.keep(f"{NAME}.txt", _reports(texts)),)
    return (*interface_checks(changes, before, after, reports), needed_check(before, after))


def interface_checks(
    changes: Sequence[LibraryChange],
    stock: Mapping[str, Program],
    patched: Mapping[str, Program],
    evidence: tuple[str, ...],
) -> tuple[Check, Check]:
    """A library that others link must keep what it offers; a plugin is only looked up by name."""
    users = linked_by_others(stock)
    note = "" if debug_information(stock, patched) else SYMBOLS_ONLY
    shared = [change for change in changes if change.path in users]
    plugins = [change for change in changes if change.path not in users]
    return (
        _interface_check(
            NAME,
            "libraries that other files link",
            shared,
            Status.FAILED,
            note,
            evidence,
            "Programs and plugins of others call these: keep them, or give the library a new "
            "SONAME and rebuild everything that links it.",
        ),
        _interface_check(
            "plugin-abi",
            "plugins",
            plugins,
            Status.WARNED,
            note,
            evidence,
            "The server finds a plugin's entry by its name: see that no configuration names "
            "what is gone.",
        ),
    )


def needed_check(stock: Mapping[str, Program], patched: Mapping[str, Program]) -> Check:
    """Libraries that are linked now and were not, or no longer."""
    new, lost = needed_changes(stock, patched)
    linked = len({name for program in patched.values() for name in program.needed})
    changed = [*(f"{name} is new" for name in new), *(f"{name} is gone" for name in lost)]
    return Gate.BUILDS.check(
        "linked-libraries",
        Status.WARNED if changed else Status.PASSED,
        f"Of the libraries that {len(patched)} programs and libraries link, "
        f"{listed(changed, SHOWN)}."
        if changed
        else f"{len(patched)} programs and libraries link the same {linked} libraries as in stock.",
        advice="Each new library is code that the server now depends on: see that the package "
        "depends on it, and that it is supported as long as the server is.",
        figures={"new": len(new), "gone": len(lost)},
        details=tuple(
            f"{name}: {word} {listed(users, SHOWN)}"
            for word, side in (("now linked by", new), ("no longer linked by", lost))
            for name, users in side.items()
        ),
    )


def _interface_check(
    name: str,
    noun: str,
    changes: Sequence[LibraryChange],
    if_broken: Status,
    note: str,
    evidence: tuple[str, ...],
    advice: str,
) -> Check:
    broken = [change for change in changes if change.breaks]
    trouble = [change for change in changes if change.trouble]
    added = sum(len(change.added) for change in changes)
    if broken:
        status = if_broken
        sentence = "; ".join(_broken(change) for change in broken)
    elif trouble:
        status, sentence = Status.WARNED, f"{trouble[0].path}: {trouble[0].trouble}"
        advice = "Compare these libraries by hand."
    else:
        status = Status.PASSED
        more = f", and {added} more" if added else ""
        sentence = f"{len(changes)} of {len(changes)} {noun} offer all that the stock ones do{more}"
    return Gate.BUILDS.check(
        name,
        status,
        f"{sentence}.{note}",
        advice=advice,
        figures={
            "compared": len(changes),
            "removed": sum(len(change.removed) for change in changes),
            "changed": sum(len(change.changed) for change in changes),
            "added": added,
        },
        details=tuple(line for change in changes for line in _lines(change)),
        evidence=evidence,
    )


def _broken(change: LibraryChange) -> str:
    parts = [
        f"{verb} {listed(names, SHOWN)}"
        for verb, names in (("lost", change.removed), ("changed", change.changed))
        if names
    ]
    return f"{change.path.rpartition('/')[2]} {' and '.join(parts)}"


def _lines(change: LibraryChange) -> list[str]:
    lines = [
        f"{change.path}: {verb} {name}"
        for verb, names in (
            ("removed", change.removed),
            ("changed", change.changed),
            ("added", change.added),
        )
        for name in names
    ]
    if change.rust_names:
        lines.append(
            f"{change.path}: {change.rust_names} names that Rust's compiler made up differ; "
            "nothing links them by name"
        )
    return [*lines, *([f"{change.path}: {change.trouble}"] if change.trouble else [])]


def _changes(texts: Mapping[str, str], stock: Mapping[str, Program]) -> list[LibraryChange]:
    compared = _compared(texts)
    changes = [
        change_of(before, int(status), texts.get(report, ""))
        for before, _, status, report in compared
    ]
    return [*changes, *gone(stock, [row[0] for row in compared])]


def _compared(texts: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    rows = [line.split("\t") for line in texts.get("compared.tsv", "").splitlines()]
    return [(r[0], r[1], r[2], r[3]) for r in rows if len(r) == 4 and r[2].isdecimal()]


def _reports(texts: Mapping[str, str]) -> str:
    return "\n".join(
        f"{before} -> {after}: status {status}\n{texts.get(report, '')}"
        for before, after, status, report in _compared(texts)
    )
