"""loginload: logins by OpenID Connect's authorization code, by a program of the lab.

A login is what a browser and a site do: the authorization endpoint gives a form, which takes name
and password and leads back to the site with a code. The site changes the code for a token, by which
it asks whose it is. The answer to each request has what the next one is made with; no browser keeps
a cookie for its next login.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlencode

from dsharness.loads.load_driver import LoadReport, unfit
from dsharness.loads.own_load import MOST_REQUESTS, OwnLoad
from dsharness.model import Workload
from dsharness.systems.ldap.directory import user_name
from dsharness.systems.system import Endpoint
from dsproducts.keycloak.identity_provider import LoginEndpoint
from dsproducts.keycloak.login_workload import LoginWorkload

STEPS = ("authorize", "password", "token", "userinfo")
FORM = "application/x-www-form-urlencoded"


class Loginload(OwnLoad):
    """The driver of the lab's own load for identity providers."""

    name: ClassVar[str] = "loginload"
    usual: ClassVar[str] = "keycloak-login"
    speech: ClassVar[Path | None] = Path(__file__).with_name("http_speech.rs")

    def lines(self, workload: Workload, endpoint: Endpoint, turn: int) -> Iterator[str]:
        load, server = _login(workload, endpoint)
        users = list(range(load.distinct_users))
        random.Random(f"{load.id}/{turn}").shuffle(users)  # noqa: S311 - fairness, not secrecy
        for number in users[:MOST_REQUESTS]:
            steps = [step.line for step in login_steps(server, user_name(number))]
            yield " ".join([f"{load.operation}/{','.join(STEPS)}", *steps])

    def server(self, workload: Workload, endpoint: Endpoint) -> tuple[str, list[str]]:
        load, server = _login(workload, endpoint)
        return f"tcp://{server.host}:{server.port_of(load.protocol)}", []

    def parse(self, text: str) -> LoadReport:
        """Each login is a bind at the directory: whoever answers from a cache has checked none."""
        return replace(super().parse(text), exact=True)


def _login(workload: Workload, endpoint: Endpoint) -> tuple[LoginWorkload, LoginEndpoint]:
    if isinstance(workload, LoginWorkload) and isinstance(endpoint, LoginEndpoint):
        return workload, endpoint
    raise unfit(workload, "logs users in, which this server does not do")


class Step:
    """A request, the status of its answer, and a text that this has, with what follows it."""

    def __init__(self, status: int, found: str, ends: str, request: str) -> None:
        self.text = f"{found}\t{ends}\n{request}" if ends else f"{found}\n{request}"
        self._status = status

    @property
    def line(self) -> str:
        """As the program's plan has it."""
        return f"{self._status} 1 - {self.text.encode().hex()}"


def login_steps(server: LoginEndpoint, name: str) -> Iterator[Step]:
    """One user's login; the program fills in what stands in braces."""
    place = f"/realms/{server.realm}"
    whose = {"client_id": server.client, "redirect_uri": server.site}
    asked = whose | {"response_type": "code", "scope": "openid", "state": name}
    begin = f"{place}/protocol/openid-connect"
    yield Step(
        200,
        "/login-actions/authenticate?",
        '"',
        _request(server, f"GET {begin}/auth?{_form(asked)}"),
    )
    given = {"username": name, "password": server.users.user_password, "credentialId": ""}
    yield Step(
        302,
        "code=",
        "&\r",
        _request(
            server,
            f"POST {place}/login-actions/authenticate?{{found}}",
            "Cookie: {cookies}",
            content=_form(given),
        ),
    )
    secret = {"client_secret": server.secret, "grant_type": "authorization_code"}
    change = f"{_form(whose | secret)}&code={{found}}"
    yield Step(
        200, '"access_token":"', '"', _request(server, f"POST {begin}/token", content=change)
    )
    yield Step(
        200,
        f'"preferred_username":"{name}"',
        "",
        _request(server, f"GET {begin}/userinfo", "Authorization: Bearer {found}"),
    )


def _form(values: Mapping[str, str]) -> str:
    return urlencode(values)


def _request(server: LoginEndpoint, asked: str, *headers: str, content: str = "") -> str:
    """A request without the length of its content, which the program knows."""
    kind = (f"Content-Type: {FORM}",) if content else ()
    lines = (f"{asked} HTTP/1.1", f"Host: {server.host}:{server.port_of('oidc')}", *headers, *kind)
    return "\r\n".join((*lines, "", content))
