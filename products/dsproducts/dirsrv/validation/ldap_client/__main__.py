"""Run one suite against the server that a job names."""

from __future__ import annotations

import sys

from .job import Attempt, read_job, report
from .operations import OPERATIONS, REPLIES, WRITES
from .passwords import BINDS, PASSWORDS, TLS

SUITES: dict[str, dict[str, Attempt]] = {
    "binds": BINDS,
    "tls": TLS,
    "operations": OPERATIONS,
    "passwords": PASSWORDS,
    "replies": REPLIES,
    "writes": WRITES,
}


def main(suite: str, job_file: str) -> None:
    """Every try is reported, whatever came of those before it."""
    job = read_job(job_file)
    for name, attempt in SUITES[suite].items():
        report(name, attempt, job)


if __name__ == "__main__":
    main(*sys.argv[1:])
