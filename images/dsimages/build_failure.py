"""Why a build failed, from the output of the tools."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from dsharness.containers.engine import last_line
from dsharness.errors import (
    DeadlineError,
    DiskFullError,
    DsbisectError,
    EngineError,
    ImageError,
    PackageError,
    RefusedError,
    UnreachableError,
)
from dsharness.process.command import Completed, says_disk_full

REFUSED = re.compile(
    r"^dsbisect-package\t(?P<name>.*?)\t(?P<wanted>.*?)\t(?P<offered>.*)$", re.MULTILINE
)
UNSIGNED = re.compile(
    r"^dsbisect-unsigned\t(?P<repository>.*)$"
    r"|^.*(is not signed|gpg check failed|public key .* is not installed).*$",
    re.IGNORECASE | re.MULTILINE,
)
UNREACHABLE = re.compile(
    r"^.*("
    r"could not resolve|temporary failure (in name resolution|resolving)|no such host"
    r"|failed to fetch|unable to fetch|could not connect|cannot initiate the connection"
    r"|connection (refused|timed out|reset)|no route to host|network is unreachable"
    r"|i/o timeout|tls handshake timeout|x509:|certificate verif"
    r"|release file .* is (expired|not valid yet)|does not have a release file"
    r"|failed to download metadata|cannot download|curl error|no more mirrors to try"
    r"|pinging container registry|error pinging|unauthorized|manifest unknown|status: 50\d"
    r").*$",
    re.IGNORECASE | re.MULTILINE,
)
# Of what the pattern above finds: no answer at all, or none but "later".
KILLED = frozenset({137, 143})  # 128 and the signal, as shells and engines say it
SILENT = re.compile(
    r"could not resolve|temporary failure|no such host|could not connect|cannot initiate"
    r"|connection (refused|timed out|reset)|no route to host|network is unreachable"
    r"|i/o timeout|tls handshake|x509:|certificate verif|status: 50\d|\b50[0234] "
    r"|curl error \((?!22\b|37\b)|repomd.xml: all mirrors were tried",
    re.IGNORECASE,
)
UNMET = re.compile(
    r"^.*(nothing provides|but it is not (installable|going to be installed)"
    r"|unmet dependencies|conflicts with file from).*$",
    re.IGNORECASE | re.MULTILINE,
)
# buildah's own last line repeats the command, which may be a whole script.
REPEATED = re.compile(
    r"^error: (error )?building at step .*", re.IGNORECASE | re.MULTILINE | re.DOTALL
)


def no_answer_or_a_refusal(output: str) -> type[UnreachableError | RefusedError]:
    """Whether a fetch failed for the network, which would fail others as well."""
    return UnreachableError if SILENT.search(output) else RefusedError


def fault(done: Completed, what: str, log: Path, *, foreign: bool = False) -> DsbisectError:
    """The error that a failed command of a build stands for.

    ``foreign``: a program of what was built ran there, without a network. Whatever it printed, it
    is this candidate's failure; the engine has measured whether the disk is full.
    """
    output = f"{done.stdout}\n{done.stderr}"
    ended = None if foreign and not done.timed_out else _ended(done, output, what, log)
    if ended is not None:
        return ended
    refused = _refused(output, what, log)
    if refused is not None:
        return refused
    unreachable = None if foreign else UNREACHABLE.search(output)
    if unreachable is not None:
        return no_answer_or_a_refusal(output)(
            f"{what}: a package source or registry cannot be used: {unreachable[0].strip()}",
            hint="check the network and its proxy; another mirror: base.mirror or "
            "DSBISECT_MIRROR_<SUITE>",
            log=log,
        )
    unmet = UNMET.search(output)
    if unmet is not None:
        return PackageError(
            f"{what}: packages do not fit each other: {unmet[0].strip()}",
            hint="a source package made for another release, or a repository that is missing",
            log=log,
        )
    short = replace(
        done, stdout=REPEATED.sub("", done.stdout), stderr=REPEATED.sub("", done.stderr)
    )
    return ImageError(f"{what}: {last_line(short)}", hint="see the log", log=log)


def _refused(output: str, what: str, log: Path) -> PackageError | None:
    """What the scripts that install packages refused."""
    refused = REFUSED.search(output)
    if refused is not None:
        return PackageError(
            f"{what}: package {refused['name']}: wanted {refused['wanted']}; "
            f"available: {', '.join(refused['offered'].split()) or 'none'}",
            hint="correct the row's version, or name a source that has it "
            "(EOL archive, vault, Koji); `--relock` accepts what is offered now",
            log=log,
        )
    unsigned = UNSIGNED.search(output)
    if unsigned is not None:
        why = f"no key in the image for {unsigned['repository']}"
        return PackageError(
            f"{what}: signatures cannot be checked: "
            f"{why if unsigned['repository'] else unsigned[0].strip()}",
            hint="when the repository signs nothing and you accept that, say `unsigned: true` "
            "next to its `repositories`",
            log=log,
        )
    return None


def _ended(done: Completed, output: str, what: str, log: Path) -> DsbisectError | None:
    """What ended it from outside."""
    if done.timed_out:
        return DeadlineError(f"{what}: it timed out", hint="a slow network: run it again", log=log)
    if says_disk_full(output):
        return DiskFullError(
            f"{what}: no space left",
            hint="`dsbisect clean --images` frees what the lab made; the next run resumes",
            log=log,
        )
    if done.status in KILLED or "signal: killed" in output:
        return EngineError(
            f"{what}: what ran was killed",
            hint="was there too little memory? The same command continues where this one stopped",
            log=log,
        )
    return None
