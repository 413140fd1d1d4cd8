"""The names of functions that packages do not bring along, from servers that the user names.

Distributions keep them in packages of their own, and give them out by the id of a build as well
(debuginfod). Where ``DEBUGINFOD_URLS`` names such servers, as some distributions set it for
everybody, perf finds in its folder of builds what they know of the files that it saw.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from dsharness.process.command import run
from dsharness.process.deadline import Deadline

SERVERS = "DEBUGINFOD_URLS"
CLIENT = "debuginfod-find"
LIST_S, FETCH_S = 30.0, 180.0  # of all files together: without them it is a profile, too
BUILD = re.compile(r"^(?P<id>[0-9a-f]{8,64}) (?P<file>/.+)$")


def add_debug_symbols(seen: Path, builds: Path) -> None:
    """Put next to the builds that perf kept what the servers know of them."""
    if not os.environ.get(SERVERS) or shutil.which(CLIENT) is None:
        return
    listed = run(
        ("perf", "buildid-list", "--with-hits", "--input", str(seen)),
        deadline=Deadline.after(LIST_S),
    )
    deadline = Deadline.after(FETCH_S)
    for build_id in build_ids(listed.stdout.splitlines()):
        found = run((CLIENT, "debuginfo", build_id), deadline=deadline)
        kept = builds / ".build-id" / build_id[:2] / build_id[2:]
        if found.ok and kept.is_dir():
            shutil.copyfile(found.stdout.strip(), kept / "debug")


def build_ids(lines: Iterable[str]) -> Iterator[str]:
    """Those of files; the kernel's own names need no server."""
    for line in lines:
        if found := BUILD.match(line.strip()):
            yield found["id"]
