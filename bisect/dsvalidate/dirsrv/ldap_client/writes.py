"""Writing without a pause until the server is gone; the last line tells what it acknowledged."""

from __future__ import annotations

from ldap3.core.exceptions import LDAPException

from .attempt import Attempt, expect
from .job import Job

MOST = 100_000


def until_it_ends(job: Job) -> str:
    """Entries one after the other; the number of those that the server acknowledged."""
    count = 0
    with job.bound(job.manager) as connection:
        try:
            while count < MOST:
                name = f"write-{count:06d}"
                dn = f"cn={name},ou=writes,{job.suffix}"
                entry = {"sn": name, "description": name * 10}
                done = connection.add(dn, ["top", "person"], entry)
                expect(done, f"the server refused {dn}: {connection.result}")
                count += 1
        except (LDAPException, OSError):
            pass
    return str(count)


WRITES: dict[str, Attempt] = {"acknowledged": until_it_ends}
