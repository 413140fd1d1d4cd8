"""What the server tells anyone, and an ordinary user: every value, for a search for secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import ldap3

from .attempt import Attempt, expect
from .job import Job, User, opened

PLACES = ("", "cn=monitor", "cn=config", "cn=changelog")


def to_anyone(job: Job) -> str:
    return json.dumps(_told(job, None))


def to_a_user(job: Job) -> str:
    """After binds with a wrong password and with the right one."""
    user = next((user for user in job.users if user.scheme != "CLEAR"), job.users[0])
    told = {}
    for who in (replace(user, password=f"x{user.password}"), user):
        with opened(job.server(), who) as connection:
            connection.bind()
            told[f"the reply to a bind of {user.dn}: {connection.result['description']}"] = str(
                connection.result
            )
    return json.dumps({**told, **_told(job, user)})


def _told(job: Job, user: User | None) -> dict[str, str]:
    """Place -> values, a character for each byte."""
    who = user.dn if user else "anyone"
    told: dict[str, str] = {}
    with opened(job.server(), user) as connection:
        expect(connection.bind(), f"the bind of {who} was refused")
        for base in (*PLACES, job.suffix):
            scope = ldap3.SUBTREE if base else ldap3.BASE
            connection.search(base, "(objectClass=*)", scope, attributes=["*", "+"])
            told[f"the result for {who}: {base or 'the root entry'}"] = str(connection.result)
            for entry in connection.response or ():
                told.update(_values(who, entry))
    return told


def _values(who: str, entry: dict[str, Any]) -> dict[str, str]:
    return {
        f"the reply to {who}: {entry['dn'] or 'the root entry'}: {name}": "\n".join(
            value.decode("latin-1") for value in values
        )
        for name, values in entry.get("raw_attributes", {}).items()
    }


REPLIES: dict[str, Attempt] = {"replies-to-anyone": to_anyone, "replies-to-a-user": to_a_user}
