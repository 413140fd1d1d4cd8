"""Whether a build failed because of what an earlier one left in its folder. Core pure logic.

[file truncated: x.o]                            what was left is broken
[undefined reference to `slapi_ch_free']         the source defines it: an old object or archive
[undefined reference to `BN_new']                a library's: it would fail from nothing too
[No rule to make target 'old.h']                 only what was left still asks for it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice

from dsbuilds.failure_reason import stage_of
from dsharness.errors import BuildError

MOST = 20  # of a kind: those that follow are of the same cause
MOST_LINES = 1000
BUILD_FOLDER = "/build/source/"
MADE = re.compile(r"\.(l?[ao]|so[.\d]*|d|Pl?o|rlib|rmeta)$|(^|/)(rs|\.libs|\.deps)/")
# Before make, these say enough: what was left has no part in it.
EXPLAINED = re.compile(
    r"^(configure|\S+\.(ac|am|m4))(:\d+)?: error: |^config\.status: error: cannot find input file",
    re.MULTILINE,
)
NO_FILE = r"[`'\"]?([^\s`'\":]+)[`'\"]?: No such file or directory"
NO_PROTOTYPE = re.compile(r"\s|[#*/}]|extern\b|static\b|typedef\b")
RUST_SYMBOL = re.compile(r"_ZN\w*17h[0-9a-f]{16}E$|_R[A-Z]|core::|std::")


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a failed build's source has."""

    files: Collection[str]
    rules: str  # the text of what its Makefile is made of
    lines: Callable[[str], Sequence[str]]  # of its code, those with a word

    def has(self, path: str) -> bool:
        """Whether it has that file, wherever it is."""
        path = _inside(path)
        return path in self.files or any(each.endswith(f"/{path}") for each in self.files)

    def names(self, path: str) -> bool:
        """Whether its Makefile speaks of that file."""
        name = _inside(path).rpartition("/")[2]
        alone = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        return bool(name) and alone.search(self.rules) is not None

    def defines(self, symbol: str) -> bool:
        """Whether its own code has that function or variable; what is in doubt it has."""
        if RUST_SYMBOL.match(symbol):
            return True
        try:
            lines = self.lines(symbol)
        except BuildError:  # a partial clone may lack files that no build reads
            return True
        return any(_definition(line, symbol) for line in lines)

    def left_asks(self, path: str) -> bool:
        """A file that only what was left can ask for."""
        return not self.has(path) and not self.names(path)

    def made_before(self, path: str) -> bool:
        """A missing file that an earlier build made, or would have to make."""
        if path.startswith(("/", "-")) and not path.startswith(BUILD_FOLDER):
            return False
        return MADE.search(_inside(path)) is not None or self.left_asks(path)

    def makes(self, path: str) -> bool:
        """A header that its build makes."""
        return not self.has(path) and (self.has(f"{path}.in") or self.names(path))


def _inside(path: str) -> str:
    return re.sub(r"^(\.{1,2}/|\$\(\w+\)/)+", "", path.removeprefix(BUILD_FOLDER))


def _definition(line: str, symbol: str) -> bool:
    """Whether a line begins one.

    [int f(void)]  [f(int a,]  [pub extern "C" fn f() {]  [int f = 1;]  but not  [int f(void);]
    """
    line = line.rstrip()
    if re.search(rf"\bfn {re.escape(symbol)}\b", line):
        return not line.endswith(";")
    if NO_PROTOTYPE.match(line):
        return False
    return not (re.search(rf"\b{re.escape(symbol)}\s*\(", line) and line.endswith(";"))


def _always(source: Source, found: str) -> bool:
    del source, found
    return True


RULES: tuple[tuple[re.Pattern[str], Callable[[Source, str], bool]], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), rule)
    for pattern, rule in (
        (r"(file truncated|file format not recognized|malformed archive)", _always),
        (r"(multiple definition of|not a valid libtool|Version mismatch error)", _always),
        (r"(generated for autoconf|error\[E0460\]|error\[E0514\])", _always),
        (r"can't find crate for `(?!std`|core`|alloc`|proc_macro`)([^`]+)`", _always),
        (r"No rule to make target [`']([^']+)'", Source.left_asks),
        (r"cannot find the library [`']([^']+)'", Source.names),
        (r"undefined reference to (?:symbol )?[`']([^'@]+)", Source.defines),
        (r"fatal error: (\S+): No such file or directory", Source.makes),
        (rf"^(?!.*fatal error: ).*?{NO_FILE}", Source.made_before),
    )
)

TELLING = re.compile(
    r"truncated|recognized|malformed|multiple definition|not a valid|mismatch|generated for|E0460"
    r"|E0514|find crate|No rule|find the library|undefined reference|No such file",
    re.IGNORECASE,
)


def may_be_stale(output: str, source: Source) -> bool:
    """Whether a build from nothing may come further, as far as the failed one's words tell."""
    stage = stage_of(output)
    if stage == "lay":  # of the source, and of what was left
        return True
    telling = "\n".join(islice(filter(TELLING.search, output.splitlines()), MOST_LINES))
    for pattern, rule in RULES:
        asked = dict.fromkeys(found[1] for found in pattern.finditer(telling))
        if any(rule(source, each) for each in islice(asked, MOST)):
            return True
    return stage in {"autoreconf", "configure"} and EXPLAINED.search(output) is None
