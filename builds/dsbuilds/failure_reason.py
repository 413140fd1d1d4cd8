"""Why a build failed, from the output of the tools. Core pure logic."""

from __future__ import annotations

import re
from pathlib import Path

from dsharness.errors import BuildError, DsbisectError, UnreachableError


class UnbuildableError(BuildError):
    """What does not build; says whether another time or another toolchain may help."""

    lasting = True
    toolchain_may_be_wrong = False


# The first line that matches is the cause; what follows is mostly its consequence.
CAUSES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^.*: fatal error: .*$",
        r"^[^\s:]+:\d+(?::\d+)?: error: .*$",
        r"^error: failed to run custom build command for `(?!\S+ v\S+ \(/build/source).*$",
        r"^(error: )? *(the lock file \S+ needs to be updated).*$",
        r"^error(\[E\d+\])?: (?!could not compile|failed to (run custom|sync)|aborting due).*$",
        r"^configure(\.ac)?(:\d+)?: error: .*$",
        r"^.*undefined reference to .*$",
        r"^make(\[\d+\])?: \*\*\* No rule to make target .*$",
        r"^.*(Read-only file system|Permission denied|Connection refused|File too large).*$",
        r"^.*(failure in name resolution|Could not resolve host|Network is unreachable).*$",
        r"^.*(Killed|Cannot allocate memory|virtual memory exhausted|Out of memory).*$",
        r"^.*: (command not found|not found)$",
    )
)
STAGE = re.compile(r"^dsbisect-stage\t(\w+)$", re.MULTILINE)
# Before make, it is the toolchain that does not fit rather than the commit that is broken.
SURROUNDINGS = frozenset({"autoreconf", "configure"})
LAYING_OUT = "lay"  # of the source, and of what an earlier build left
CRATES = re.compile(
    r"no matching package|failed to select a version|lock file version"
    r"|rustc [0-9.]+ is not supported|requires rustc [0-9.]+|lock file .* needs to be updated"
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
STALE = re.compile(
    r"No rule to make target|undefined reference|file format not recognized|file truncated"
    r"|multiple definition|can't find crate|No such file or directory"
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
            return found[0].strip()[:300]
    if re.search(r"\bError 153$", output, re.MULTILINE):  # 128 and SIGXFSZ
        return "a file grew beyond the limit (File too large)"
    failed = re.search(r"^make(\[\d+\])?: \*\*\* .*$", output, re.MULTILINE)
    if failed is not None:
        return failed[0].strip()[:300]
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no output"


def may_be_the_toolchain(output: str) -> bool:
    """Whether another toolchain might build the same tree."""
    return stage_of(output) in SURROUNDINGS or CRATES.search(output) is not None


def may_be_stale(output: str) -> bool:
    """Whether what an earlier build left in the folder may be the cause."""
    return bool(STALE.search(output)) or stage_of(output) in {*SURROUNDINGS, LAYING_OUT}


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
