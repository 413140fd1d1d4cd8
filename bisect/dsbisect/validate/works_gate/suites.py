"""The functional suites of the LDAP client, against a server that the patched packages made."""

from __future__ import annotations

from collections.abc import Sequence

from dsbisect.validate.check import Check, Gate
from dsbisect.validate.client_answers import checks_of
from dsbisect.validate.directory.populated_image import populated
from dsbisect.validate.directory.population import client_users
from dsbisect.validate.directory.validated_server import validated_server
from dsbisect.validate.trial import Trial

OTHERWISE = (
    "The same request works on stock. The log of this step has the client's and the server's words."
)
ADVICE = {
    "bind-every-scheme": "The server starts but refuses right passwords: look for a password "
    "storage plugin that is missing or not registered.",
    "bind-wrong-password": "The server accepts wrong passwords. Do not ship this.",
    "bind-empty-password": "A name with an empty password must not count as proof. Do not ship.",
    "starttls": "Clients that encrypt lose the server: look at NSS and the instance's certificate.",
    "ldaps": "Clients that encrypt lose the server: look at NSS and the instance's certificate.",
}


def binds(trial: Trial) -> Sequence[Check]:
    return _suite(trial, "binds")


def operations(trial: Trial) -> Sequence[Check]:
    return _suite(trial, "operations")


def passwords(trial: Trial) -> Sequence[Check]:
    return _suite(trial, "passwords")


def _suite(trial: Trial, name: str) -> Sequence[Check]:
    made = populated(trial, trial.patched)
    with validated_server(trial, made.reference, purpose=name) as server:
        server.start()
        trial.progress(f"running the client's suite {name}")
        answers = server.asked(name, {"users": client_users(made.population.users)})
        server.stop()
    return checks_of(answers, Gate.WORKS, ADVICE, OTHERWISE)
