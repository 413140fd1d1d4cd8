"""Why a build failed, from the output of the tools. Core pure logic.

A build may also fail because of what an earlier one left in its folder:

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
from pathlib import Path

from dsharness.errors import BuildError, DsbisectError, UnreachableError


class UnbuildableError(BuildError):
    """What does not build; says whether another time or another toolchain may help."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        log: Path | None = None,
        lasting: bool = True,
        toolchain: bool = False,
        compiler: bool = False,
    ) -> None:
        super().__init__(message, hint=hint, log=log)
        self.lasting = lasting
        self.toolchain_may_be_wrong = toolchain  # for this source alone
        self.compiler_may_be_wrong = compiler  # its neighbours' too, where nothing else is known


# What cargo says of a rustc or a cargo that is too old, for the whole source or for one crate.
NEWER = (
    r"cannot be built because it requires rustc|rustc \S+ is not supported by"
    r"|requires rustc [0-9.]+|feature `edition\d+` is required|older than the `\d+` edition"
    r"|lock file version \S+ (?:requires|was found)"
)
# The first line that matches is the cause; what follows is mostly its consequence.
CAUSES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^.*: fatal error: .*$",
        r"^[^\s:]+:\d+(?::\d+)?: error: .*$",
        rf"^.*(?:{NEWER}).*$",
        r"^error: failed to run custom build command for `(?!\S+ v\S+ \(/build/source).*$",
        r"^(error: )? *(the lock file \S+ needs to be updated).*$",
        r"^error(\[E\d+\])?: (?!could not compile|failed to (run custom|sync)|aborting due).*$",
        r"^configure(\.ac)?(:\d+)?: error: .*$",
        r"^.*undefined reference to .*$",
        r"^.*\bld: cannot find .*$",
        r"^make(\[\d+\])?: \*\*\* No rule to make target .*$",
        r"^.*(Read-only file system|Permission denied|Connection refused|File too large).*$",
        r"^.*(failure in name resolution|Could not resolve host|Network is unreachable).*$",
        r"^.*(Killed|Cannot allocate memory|virtual memory exhausted|Out of memory).*$",
        r"^.*: (command not found|not found)$",
        r"^error: (?!aborting due).*$",  # of cargo, where rustc gave no better one
    )
)
STAGE = re.compile(r"^dsbisect-stage\t(\w+)$", re.MULTILINE)
# Before make, it is the toolchain that does not fit rather than the commit that is broken.
SURROUNDINGS = frozenset({"autoreconf", "configure"})
CRATES = re.compile(
    rf"{NEWER}|no matching package|failed to select a version|lock file version"
    r"|lock file .* needs to be updated|failed to parse manifest at `/build/(crates|vendored)/"
    r"|failed to run custom build command for `(?!\S+ v\S+ \(/build/source)"
    r"|^ *--> /build/(crates|vendored)/|^ *--> /usr/share/cargo/registry/",
    re.IGNORECASE | re.MULTILINE,
)
# What cargo says of a source or a lock that no network could help.
UNFIT = re.compile(
    CRATES.pattern
    + r"|failed to (parse|load) (manifest|lock file)|checksum for .* (changed|failed)"
    r"|lock file .* needs to be updated|not found in registry|HTTP 40[34]|response code:? 40[34]",
    re.IGNORECASE,
)
COMPILER = re.compile(
    r"^[^\s:]+\.(c|h|cpp|cc)\b[^\s:]*:\d+(:\d+)?: (fatal )?error: "
    r"|\bld: cannot find -l|^error(\[E\d+\])?: .*\n *--> ",
    re.MULTILINE,
)
PASSING = re.compile(
    r"Killed|Cannot allocate memory|virtual memory exhausted|No space left|Disk quota exceeded"
    r"|Resource temporarily unavailable",
    re.IGNORECASE,
)


# What cargo says when the network, or a registry as a whole, does not answer.
SILENT = re.compile(
    r"could not resolve|couldn't (resolve|connect)|failed to connect|connection (refused|reset)"
    r"|timed? ?out|timeout|network (failure|is unreachable)|no route to host|spurious network"
    r"|name resolution|\bSSL\b|\bTLS\b|certificate|\bproxy\b|HTTP 5\d\d|response code:? 5\d\d"
    r"|failed to (fetch|update) |unable to update registry|empty reply|\bcurl\b",
    re.IGNORECASE,
)


def stage_of(output: str) -> str:
    """Return how far the build came."""
    stages = STAGE.findall(output)
    return stages[-1] if stages else "start"  # the container itself did not work


def cause_of(output: str) -> str:
    """Return the line that most likely says why."""
    for cause in CAUSES:
        match = cause.search(output)
        if match is not None:
            return _whole(output, match)[:300]
    if re.search(r"\bError 153$", output, re.MULTILINE):  # 128 and SIGXFSZ
        return "a file grew beyond the limit (File too large)"
    failed = re.search(r"^make(\[\d+\])?: \*\*\* .*$", output, re.MULTILINE)
    if failed is not None:
        return failed[0].strip()[:300]
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no output"


def _whole(output: str, match: re.Match[str]) -> str:
    """Return a line; one that ends with a colon says what in the next."""
    line = match[0].strip()
    following = output[match.end() :].strip().partition("\n")[0].strip()
    return f"{line} {following}" if line.endswith(":") and following else line


def may_be_the_toolchain(output: str) -> bool:
    """Return whether another toolchain might build the same tree."""
    return stage_of(output) in SURROUNDINGS or CRATES.search(output) is not None


def may_be_the_compiler(output: str) -> bool:
    """Return whether another age of compiler and libraries might take it, so far as its words tell.

    A commit that is broken in itself says the same: one that fails is no reason to change the
    toolchain, but the end of a range is.
    """
    return may_be_the_toolchain(output) or COMPILER.search(output) is not None


def unfetched(output: str, origin: str, log: Path) -> DsbisectError:
    """Return why a source's crates are not here: the network's doing, or else its own."""
    lines = (line.strip()[:300] for line in output.splitlines() if UNFIT.search(line))
    problem = f"the crates of {origin} cannot be fetched: {next(lines, cause_of(output))}"
    if UNFIT.search(output) is None and SILENT.search(output) is not None:
        return UnreachableError(
            problem,
            hint="cargo's own configuration is used: check the network, proxy and mirrors",
            log=log,
        )
    return UnbuildableError(
        f"unbuildable: {problem}",
        log=log,
        lasting=False,  # the registry may have changed by then
        toolchain=CRATES.search(output) is not None,
    )


def passing(output: str) -> bool:
    """Return whether the surroundings failed rather than the source: another time it may build."""
    return bool(PASSING.search(output)) or stage_of(output) == "start"


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
        """Return whether it has that file, wherever it is."""
        path = _inside(path)
        return path in self.files or any(file.endswith(f"/{path}") for file in self.files)

    def names(self, path: str) -> bool:
        """Return whether its Makefile speaks of that file."""
        name = _inside(path).rpartition("/")[2]
        alone = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        return bool(name) and alone.search(self.rules) is not None

    def defines(self, symbol: str) -> bool:
        """Return whether its own code has that function or variable; what is in doubt it has."""
        if RUST_SYMBOL.match(symbol):
            return True
        try:
            lines = self.lines(symbol)
        except BuildError:  # a partial clone may lack files that no build reads
            return True
        return any(_definition(line, symbol) for line in lines)

    def left_asks(self, path: str) -> bool:
        """Return a file that only what was left can ask for."""
        return not self.has(path) and not self.names(path)

    def made_before(self, path: str) -> bool:
        """Return a missing file that an earlier build made, or would have to make."""
        if path.startswith(("/", "-")) and not path.startswith(BUILD_FOLDER):
            return False
        return MADE.search(_inside(path)) is not None or self.left_asks(path)

    def makes(self, path: str) -> bool:
        """Return a header that its build makes."""
        return not self.has(path) and (self.has(f"{path}.in") or self.names(path))


def _inside(path: str) -> str:
    return re.sub(r"^(\.{1,2}/|\$\(\w+\)/)+", "", path.removeprefix(BUILD_FOLDER))


def _definition(line: str, symbol: str) -> bool:
    """Return whether a line begins one.

    [int f(void)]  [f(int a,]  [pub extern "C" fn f() {]  [int f = 1;]  but not  [int f(void);]
    """
    line = line.rstrip()
    if re.search(rf"\bfn {re.escape(symbol)}\b", line):
        return not line.endswith(";")
    if NO_PROTOTYPE.match(line):
        return False
    return not (re.search(rf"\b{re.escape(symbol)}\s*\(", line) and line.endswith(";"))


def _always(source: Source, name: str) -> bool:
    del source, name
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
        names = dict.fromkeys(match[1] for match in pattern.finditer(telling))
        if any(rule(source, name) for name in islice(names, MOST)):
            return True
    return stage in SURROUNDINGS and EXPLAINED.search(output) is None
