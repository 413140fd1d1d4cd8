"""The programs the lab drives: present, and new enough."""

from __future__ import annotations

import re
import shutil

from dsharness.doctor.check import Check, fail, ok, warn
from dsharness.errors import ExitCode
from dsharness.process.command import PACKAGES_WITH, run
from dsharness.process.deadline import Deadline

# The oldest versions the lab was seen to work with.
KNOWN_TO_WORK = {"podman": (4, 3), "buildah": (1, 28)}
_VERSION_LIMIT_S = 20.0


def read_version(program: str) -> str | None:
    """The first line of ``--version``; None if the program is missing."""
    if shutil.which(program) is None:
        return None
    done = run([program, "--version"], deadline=Deadline.after(_VERSION_LIMIT_S))
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else ""


def check_program(program: str, version: str | None) -> Check:
    """Podman or buildah: needed, and from KNOWN_TO_WORK on."""
    if version is None:
        return fail(program, "not installed", how_to_install(program), ExitCode.TOOL_MISSING)
    found = re.search(r"(\d+)\.(\d+)\S*", version)
    least = ".".join(map(str, KNOWN_TO_WORK[program]))
    if found is None:
        return warn(
            program, f"says no version: {version!r}", f"`{program} --version` should answer"
        )
    if (int(found[1]), int(found[2])) < KNOWN_TO_WORK[program]:
        return warn(program, found[0], f"older than {least}, the oldest known to work: update it")
    return ok(program, found[0])


def check_mmdebstrap(*, installed: bool) -> Check:
    """Without it no Debian base can be made, and the default rows are Debian's."""
    if installed:
        return ok("mmdebstrap", "installed")
    fix = how_to_install("mmdebstrap")
    return fail("mmdebstrap", "not installed", fix, ExitCode.TOOL_MISSING)


def check_git(*, installed: bool) -> Check:
    if installed:
        return ok("git", "installed")
    return warn("git", "not installed; needed to build from source", how_to_install("git"))


def how_to_install(program: str) -> str:
    package = PACKAGES_WITH.get(program, program)
    return f"`make setup` installs it, or: apt-get install {package} / dnf install {package}"
