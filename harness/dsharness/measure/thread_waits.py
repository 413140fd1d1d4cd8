"""Where a server's threads wait: each time that the kernel puts one aside, perf notes its calls.

It says what wakes for nothing while nobody asks, and what threads wait for while many ask: a lock,
a queue, a disk, an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dsharness.measure.profiler import look, thread_stacks
from dsharness.measure.sample import Bench
from dsharness.model import ThreadWaits, WaitingPlace, Workload

EACH = ("--event", "context-switches", "--count", "1", "--user-callchains")
DEPTH = 12  # functions of a place
MOST_PLACES = 40
NUMBER = re.compile(r"[-_/ .:]?\d+$")  # of threads that are alike: worker-3


def take_thread_waits(bench: Bench, workload: Workload) -> ThreadWaits:
    """Run the load once while perf notes every switch."""
    looked = look(bench, workload, EACH)
    return ThreadWaits(
        candidate_id=bench.instance.candidate_id,
        workload_id=workload.id,
        operations=looked.operations,
        waits=places(looked.lines, looked.operations),
    )


def places(lines: Iterable[str], operations: int) -> tuple[WaitingPlace, ...]:
    """Return where threads of one name waited, how often in an operation."""
    waits = Counter(
        (NUMBER.sub("", thread), stack[::-1][:DEPTH]) for thread, stack in thread_stacks(lines)
    )
    return tuple(
        WaitingPlace(thread=thread, place=place, per_operation=count / operations)
        for (thread, place), count in waits.most_common(MOST_PLACES)
    )
