"""How many operations a run has. Pure.

A run counts exactly as many operations as it began, so that no CPU time belongs to an operation
that was not counted. Their number follows from how fast the server was so far.
"""

from __future__ import annotations

import math

from dsharness.loads.contract import Operations
from dsharness.model import Workload

SLOWER = 4.0  # times slower than expected: a machine may be that busy, and the run still ends


def run_size(workload: Workload, rate_per_s: float | None, share: float = 1.0) -> Operations:
    """As many as take ``duration_s``, or ``operations`` unless that takes longer than ``most_s``.

    ``share`` is the part of a run to make: a half, when two halves make one.
    """
    rate = rate_per_s or workload.threads / workload.most_s
    wanted = max(rate * workload.duration_s, min(workload.operations, rate * workload.most_s))
    per_thread = max(1, math.ceil(share * wanted / workload.threads))
    expected_s = per_thread * workload.threads / rate
    return Operations(per_thread=per_thread, limit_s=SLOWER * expected_s + workload.most_s)
