"""What libraries offer and need: abidiff's reports, and the tables of ELF files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
class Change:
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
    """Path -> what the script said of each ELF file."""
    rows = [line.split("\t") for line in table.splitlines()]
    found = (
        Program(path=row[0], soname=row[1], debug=row[2] == "yes", needed=_words(row[3]))
        for row in rows
        if len(row) == 4
    )
    return {each.path: each for each in found}


def change_of(path: str, status: int, report: str) -> Change:
    """What one report of abidiff says."""
    if status & BROKEN or status > 15:
        last = (report.strip().splitlines() or ["it said nothing"])[-1]
        return Change(path=path, trouble=f"abidiff ended with status {status}: {last[:200]}")
    kinds: dict[str, list[str]] = {"D": [], "A": [], "C": []}
    rust = 0
    for match in CHANGE.finditer(report):
        what = _short(match["what"])
        if RUST.fullmatch(what.partition("@")[0]):
            rust += 1
        elif what not in kinds[match["kind"]]:
            kinds[match["kind"]].append(what)
    renamed = SONAME.search(report)
    if renamed is not None:
        kinds["C"].insert(0, f"its SONAME, from {renamed['old']} to {renamed['new']}")
    return Change(
        path=path,
        removed=tuple(kinds["D"]),
        changed=tuple(kinds["C"]),
        added=tuple(kinds["A"]),
        rust_names=rust,
    )


def gone(stock: Iterable[str], compared: Iterable[str]) -> tuple[Change, ...]:
    """Stock libraries that the patched packages do not have."""
    lost = sorted({path for path in stock if ".so" in path} - set(compared))
    return tuple(Change(path=path, removed=("the whole library",)) for path in lost)


def linked_by_others(stock: Mapping[str, Program]) -> dict[str, int]:
    """Path -> how many of the packages' files are linked with it: an interface for others too."""
    users = {
        each.path: sum(each.soname in other.needed for other in stock.values())
        for each in stock.values()
        if each.soname
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
    return all(any(each.debug for each in side.values()) for side in (stock, patched))


def _users(side: Mapping[str, Program]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for each in side.values():
        for name in each.needed:
            users.setdefault(name, []).append(each.path.rpartition("/")[2])
    return users


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _short(what: str) -> str:
    """The symbol alone where abidiff names it: 'function int f(int)'    {f} -> f."""
    symbol = SYMBOL.search(what)
    return symbol["symbol"] if symbol else what
