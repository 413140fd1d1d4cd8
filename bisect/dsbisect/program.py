"""The program's entry: imports late, and lets `judge` report only what was measured.

`git bisect run` takes 0 for "good", 1 to 127 for "bad", 125 for "skip", and stops at 128 or more.
A missing library, a wrong option, a full disk, a closed pipe: none of them is the commit's
fault, so for `judge` everything that is not a verdict is 125. A measured verdict stays valid,
even if it cannot be printed. `validate` and `verify` have answers of their own. A parent process
decides the status of the three: a library may end its process with any.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from dsbisect.answering_child import answer_of_child
from dsbisect.standard_streams import fill_gaps, flush, leave, patient

GOOD, BAD, SKIP, INTERRUPTED = 0, 1, 125, 130
# No other part of the program ends with these: an ordinary 0 or 1 is not a verdict.
JUDGED_GOOD, JUDGED_BAD = 1000, 1001
NOT_TO_BE_SHIPPED, VALIDATION_OPEN = 1001, 1003
# What `validate` ends with, where its 1 and 3 are answers (docs/exit-codes.md).
VALIDATED = {NOT_TO_BE_SHIPPED: 1, VALIDATION_OPEN: 3, 20: 3, 1: 70, 3: 78}
DEFECT = 70
HELP = {"-h", "--help"}


def main() -> NoReturn:
    """Run one command; where the status is the answer, only what was found becomes one."""
    # more threads for a small table wait for one another longer than they count
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    fill_gaps()
    sys.stderr = patient(sys.stderr, 2)
    command = command_of(sys.argv[1:])
    # What a command found stays so if nobody reads it; where the status is the whole answer, also
    # if it cannot be written.
    sys.stdout = patient(sys.stdout, 1, full=command in {"judge", "validate", "verify"})
    if command in {"validate", "verify"}:
        _answer(_validated_run, otherwise=DEFECT)
    if command == "judge":
        _answer(_judged_run, otherwise=SKIP)
    _run()


def _answer(work: Callable[[], int], *, otherwise: int) -> NoReturn:
    """End with what ``work`` answers, or with ``otherwise`` if it ended without an answer."""

    def told() -> int:
        try:
            return work()
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException:  # noqa: BLE001 - such as a MemoryError while reporting another error
            return otherwise
        finally:
            flush((sys.stdout, sys.stderr))

    try:
        code = answer_of_child(told)
    except BaseException:  # noqa: BLE001 - without a child there is no answer
        code = None
    if code is None:
        _warn("the process ended without an answer; is there too little memory?")
    leave(otherwise if code is None else code)
    raise AssertionError("the process has ended")


def command_of(args: list[str]) -> str:
    """The command, unless it is only asked for its help: no option before it takes a word."""
    return "" if HELP & set(args) else next((each for each in args if not each.startswith("-")), "")


def judged(code: object) -> int:
    """The exit code for `git bisect run`."""
    match code:
        case 1000:
            return GOOD
        case 1001:
            return BAD
        case 130:
            return INTERRUPTED
        case _:
            return SKIP


def validated(code: object) -> int:
    """The exit code of `validate` and `verify`."""
    number = code if isinstance(code, int) else int(bool(code))
    return VALIDATED.get(number, number)


def _validated_run() -> int:
    try:
        _run()
    except SystemExit as end:
        return validated(end.code)


def _judged_run() -> int:
    try:
        _run()
    except SystemExit as end:
        code = judged(end.code)
        if code == SKIP and end.code != SKIP:
            _warn("not judged, skipped: see the error above")
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - a broken lab must not blame a commit
        _warn(f"not judged, skipped: {type(error).__name__}: {error}")
        return SKIP


def _warn(why: str) -> None:
    with contextlib.suppress(Exception):
        sys.stderr.write(f"warning: {why}\n")


def _run() -> NoReturn:
    try:
        from dsbisect.cli import main as run  # noqa: PLC0415 - its imports take a while
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    run()
