"""How far a build is, from what it prints: "Rust 12 of 52 crates, C 210 of 640 files". Pure logic.

make prints a command when it begins; so what is counted has begun, and may not be done yet.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

STAGE = re.compile(r"^dsbisect-stage\t(\w+)$")
TITLES = {
    "autoreconf": "configure",
    "configure": "configure",
    "install": "install",
    "layout": "link in another order",
}
CRATE = re.compile(r"^ *Compiling (\S+ v\S+)")
SHORT = re.compile(r"^ *(CC|CCLD) +(\S+)$")  # where make is asked to be silent
LINKS = 2  # so many one after the other: little is left to be compiled
SOURCES = re.compile(r"^\w+_SOURCES *\+?= *(.*)$", re.MULTILINE)
LOCKED = re.compile(r'^\[\[package\]\]\nname = "([^"]+)"', re.MULTILINE)
# Crates that a lock names for other systems.
ELSEWHERE = re.compile(r"(windows|winapi|wasi|wasm|redox|hermit)")
FIRST_S, EACH_S = 3.0, 10.0  # between two lines: where the stage is another one, and where not


class Stage(str):
    """What a build is doing; ``now`` tells what has become of it, for those who can show that."""

    __slots__ = ("now",)
    now: Callable[[], str]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What there is to compile; 0 where nobody knows, as where only a part is done again."""

    crates: int = 0
    files: int = 0


def totals_of(makefile: str, lock: str) -> Totals:
    """Return the totals of a build from nothing, read from Makefile.am and Cargo.lock."""
    joined = makefile.replace("\\\n", " ")
    words_named = (word for match in SOURCES.finditer(joined) for word in match[1].split())
    crates = (name for name in LOCKED.findall(lock) if not ELSEWHERE.match(name))
    return Totals(
        crates=sum(1 for _ in crates),
        files=sum(word.endswith((".c", ".cpp")) for word in words_named),
    )


@dataclass(kw_only=True)
class BuildStage:
    """What the lines so far tell."""

    totals: Totals = field(default_factory=Totals)
    name: str = ""  # as the script calls it
    _crates: set[str] = field(default_factory=set)
    _files: set[str] = field(default_factory=set)
    _links: set[str] = field(default_factory=set)  # since the last compiled file

    def add(self, line: str) -> None:
        if match := STAGE.match(line):
            self.name = match[1]
        elif self.name != "make":
            return
        elif match := CRATE.match(line):
            self._crates.add(match[1])
        elif (target := _compiled(line)) and target not in self._files:
            self._files.add(target)
            self._links.clear()
        elif target := _linked(line):
            self._links.add(target)

    @property
    def text(self) -> str:
        """The stage in words; empty where there is nothing to tell."""
        if self.name != "make":
            return TITLES.get(self.name, "")
        if len(self._links) >= LINKS:
            return "link"
        parts = (
            _count("Rust", len(self._crates), self.totals.crates, "crate"),
            _count("C", len(self._files), self.totals.files, "file"),
        )
        return ", ".join(filter(None, parts))


def _compiled(line: str) -> str:
    """The object that a command makes of a source, whether libtool or the compiler is asked."""
    words = line.split()
    if match := SHORT.match(line):
        return match[2].rpartition(".")[0] if match[1] == "CC" else ""
    out = _after("-o", words) if "-c" in words else ""
    return out.rpartition(".")[0].replace(".libs/", "") if out.endswith((".o", ".lo")) else ""


def _linked(line: str) -> str:
    """Return what libtool is asked to link."""
    words = line.split()
    if match := SHORT.match(line):
        return match[2] if match[1] == "CCLD" else ""
    return _after("-o", words) if "--mode=link" in words else ""


def _after(flag: str, words: list[str]) -> str:
    index = words.index(flag) + 1 if flag in words else len(words)
    return words[index] if index < len(words) else ""


def _count(verb: str, count: int, total: int, noun: str) -> str:
    if not count:
        return ""
    if total < count:
        return f"{verb} {count} {noun}{'' if count == 1 else 's'}"
    return f"{verb} {count} of {total} {noun}{'' if total == 1 else 's'}"


@dataclass(kw_only=True)
class StageLines:
    """Tells the stage of a build line by line of its output, but not more often than one reads."""

    progress: Callable[[str], None]
    stage: BuildStage
    clock: Callable[[], float] = time.monotonic
    _told: tuple[str, str] = ("", "")  # the stage and its text
    _at: float | None = None

    def __call__(self, line: str) -> None:
        self.stage.add(line)
        now_s, news = self.clock(), (self.stage.name, self.stage.text)
        if self._at is None:
            self._at = now_s
        since_s = now_s - self._at
        if not news[1] or news[1] == self._told[1]:
            return
        if since_s >= EACH_S or (since_s >= FIRST_S and news[0] != self._told[0]):
            self._told, self._at = news, now_s
            text = Stage(news[1])
            text.now = self._now
            self.progress(text)

    def _now(self) -> str:
        return self.stage.text
