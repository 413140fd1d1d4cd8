"""Why a build failed, from the output of the tools. Core pure logic."""

from __future__ import annotations

import re
from pathlib import Path

from dsharness.errors import BuildError, DsbisectError, UnreachableError


class UnbuildableError(BuildError):
    """What does not build; says whether another time or another toolchain may help."""

    lasting = True
    toolchain_may_be_wrong = False  # for this source alone
    compiler_may_be_wrong = False  # for it and its neighbours, where nothing else is known


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
    """How far the build came."""
    stages = STAGE.findall(output)
    return stages[-1] if stages else "start"  # the container itself did not work


def cause_of(output: str) -> str:
    """The line that most likely says why."""
    for cause in CAUSES:
        found = cause.search(output)
        if found is not None:
            return _whole(output, found)[:300]
    if re.search(r"\bError 153$", output, re.MULTILINE):  # 128 and SIGXFSZ
        return "a file grew beyond the limit (File too large)"
    failed = re.search(r"^make(\[\d+\])?: \*\*\* .*$", output, re.MULTILINE)
    if failed is not None:
        return failed[0].strip()[:300]
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no output"


def _whole(output: str, found: re.Match[str]) -> str:
    """A line; one that ends with a colon says what in the next."""
    line = found[0].strip()
    following = output[found.end() :].strip().partition("\n")[0].strip()
    return f"{line} {following}" if line.endswith(":") and following else line


def may_be_the_toolchain(output: str) -> bool:
    """Whether another toolchain might build the same tree."""
    return stage_of(output) in SURROUNDINGS or CRATES.search(output) is not None


def may_be_the_compiler(output: str) -> bool:
    """Whether another age of compiler and libraries might take it, so far as its words tell.

    A commit that is broken in itself says the same: one that fails is no reason to change the
    toolchain, but the end of a range is.
    """
    return may_be_the_toolchain(output) or COMPILER.search(output) is not None


def unfetched(output: str, origin: str, log: Path) -> DsbisectError:
    """Why a source's crates are not here: the network's doing, or else its own."""
    lines = (line.strip()[:300] for line in output.splitlines() if UNFIT.search(line))
    what = f"the crates of {origin} cannot be fetched: {next(lines, cause_of(output))}"
    if UNFIT.search(output) is None and SILENT.search(output) is not None:
        return UnreachableError(
            what, hint="cargo's own configuration is used: check the network, proxy and mirrors",
            log=log,
        )  # fmt: skip
    error = UnbuildableError(f"unbuildable: {what}", log=log)
    error.lasting = False  # the registry may have changed by then
    error.toolchain_may_be_wrong = CRATES.search(output) is not None
    return error


def passing(output: str) -> bool:
    """Whether the surroundings failed rather than the source: another time it may build."""
    return bool(PASSING.search(output)) or stage_of(output) == "start"
