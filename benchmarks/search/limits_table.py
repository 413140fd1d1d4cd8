"""What bounds any search, and what the largest line takes: the end of the report."""

from __future__ import annotations

from benchmarks.search.large import Large
from benchmarks.search.limits import bits_per_run, bits_per_vote, expected_runs, fewest_runs
from benchmarks.search.markdown import rows

WRONG = 0.05
LENGTHS = (16, 128, 1024, 100_000)


def limits_text() -> str:
    """The bounds, without which a target that is not met says little."""
    sizes = (0.5, 1.0, 2.0, 4.0)
    body = [
        [
            f"{d:g}",
            f"{bits_per_run(d):.3f}",
            f"{bits_per_vote(d):.3f}",
            *(
                f"{fewest_runs(n, d, WRONG):.0f} / {expected_runs(n, d, WRONG):.0f}"
                for n in LENGTHS
            ),
        ]
        for d in sizes
    ]
    head = ["d", "bits per value", "bits per vote", *(f"runs, n = {n:,}" for n in LENGTHS)]
    return (
        "## What no search can do better\n\n"
        "Gaussian noise, both levels known, every build for nothing, wrong in 5 %. The first "
        "figure is Fano's bound; the second adds the proof that the place is the right one, which "
        "is what good searches come to.\n\n" + rows(head, body)
    )


def large_text(large: Large) -> str:
    return (
        "## 100,000 candidates\n\n"
        f"The next step takes {large.median_ms:.1f} ms in the median, {large.slowest_ms:.1f} ms at "
        f"most, and {large.first_ms:.1f} ms when the line is laid out. The process takes "
        f"{large.resident_mb:.0f} MB at its peak, {large.empty_mb:.0f} MB of it before it "
        f"searches; a search allocates {large.traced_mb:.0f} MB.\n"
    )
