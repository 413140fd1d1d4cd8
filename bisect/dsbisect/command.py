"""The program's door: what it needs is imported late, and `judge` says only what it measured.

`git bisect run` takes 1 to 127 for "bad", 125 for "skip", and stops at 128 or more. A missing
library, a wrong option, a full disk: none of them is the commit's fault, so for `judge` everything
that is no verdict is 125.
"""

from __future__ import annotations

import sys
from typing import NoReturn

GOOD, BAD, SKIP, INTERRUPTED = 0, 1, 125, 130
JUDGED_BAD = 1001  # no other part of the program ends with it


def main() -> NoReturn:
    """Run one command; for `judge`, every status is one that `git bisect run` reads aright."""
    if sys.argv[1:2] != ["judge"]:
        _run()
    try:
        _run()
    except SystemExit as end:
        code = judged(end.code)
        if code == SKIP and end.code != SKIP:
            sys.stderr.write("warning: not judged, skipped: see the error above\n")
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BaseException as error:  # noqa: BLE001 - a broken harness must not blame a commit
        sys.stderr.write(f"warning: not judged, skipped: {type(error).__name__}: {error}\n")
        sys.exit(SKIP)


def judged(code: object) -> int:
    """What a status of the command means to `git bisect run`."""
    match code:
        case 0 | None:
            return GOOD
        case 1001:
            return BAD
        case 130:
            return INTERRUPTED
        case _:
            return SKIP


def _run() -> NoReturn:
    try:
        from dsbisect.cli import main as run  # noqa: PLC0415 - its imports take a while
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    run()
