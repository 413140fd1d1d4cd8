"""One try: what it found, or why the server did not do what it has to."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from ldap3.core.exceptions import LDAPException

from .job import Job, NotDoneError

Attempt = Callable[[Job], str]


class UnexpectedError(Exception):
    """The server answered, but not as it has to."""


def expect(condition: object, otherwise: str) -> None:
    """UnexpectedError unless it is so."""
    if not condition:
        raise UnexpectedError(otherwise)


def report(name: str, attempt: Attempt, job: Job) -> None:
    """Print what came of it as one line of JSON."""
    try:
        found, ok = attempt(job), True
    except (UnexpectedError, NotDoneError) as error:
        found, ok = str(error), False
    except (LDAPException, OSError) as error:
        found, ok = f"the client could not go on: {type(error).__name__}: {error}", False
    sys.stdout.write(json.dumps({"name": name, "ok": ok, "found": found}) + "\n")
    sys.stdout.flush()
