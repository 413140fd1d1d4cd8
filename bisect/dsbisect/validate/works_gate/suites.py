"""The functional suites of the LDAP client, against a server that the patched packages made."""

from __future__ import annotations

from collections.abc import Sequence

from dsbisect.validate.check import Check, Gate
from dsbisect.validate.client_answers import Answer, checks_of
from dsbisect.validate.directory.populated_image import populated
from dsbisect.validate.directory.population import client_users
from dsbisect.validate.directory.product_advice import AUDITED, CHANGELOG
from dsbisect.validate.directory.server_traces import Traces, observe
from dsbisect.validate.directory.validated_server import ValidatedServer, validated_server
from dsbisect.validate.trial import Trial
from dsharness.model import Image

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


NAMES = ("binds", "operations", "passwords")


def binds(trial: Trial) -> Sequence[Check]:
    return _suite(trial, "binds")


def operations(trial: Trial) -> Sequence[Check]:
    return _suite(trial, "operations")


def passwords(trial: Trial) -> Sequence[Check]:
    return _suite(trial, "passwords")


def _suite(trial: Trial, name: str) -> Sequence[Check]:
    answers, _ = answered(trial, trial.patched, name)
    return checks_of(answers, Gate.WORKS, ADVICE, OTHERWISE)


def answered(trial: Trial, image: Image, name: str) -> tuple[tuple[Answer, ...], Traces]:
    """What a suite's client says of an image's server, and what that server left behind."""
    made, side = populated(trial, image), "patched" if image is trial.patched else "stock"
    with validated_server(trial, made.reference, purpose=name) as server:
        server.start()
        if name == "passwords":
            _write_all_down(server)
        trial.progress(f"running the client's suite {name} on the {side} server")
        users = {"users": client_users(made.population.users)}
        answers = server.asked(name, users)
        replies = server.asked("replies", users) if name == "passwords" else ()
        return answers, observe(server, f"{name}-{side}", made.population.users, replies)


def _write_all_down(server: ValidatedServer) -> None:
    """Every log and the changelog, which many sites have on, see the passwords change."""
    with server.manager() as directory:
        directory.modify("cn=config", AUDITED, optional=True)
        directory.modify(*CHANGELOG, optional=True)
    server.stop()
    server.start()
