"""A login's requests, what makes the realm, and how the load's output is read."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from dsharness.containers.container import Container
from dsharness.errors import InstanceError, WorkloadError
from dsharness.loads import LOADS
from dsharness.loads.load_driver import CUT
from dsharness.loads.own_load import REQUESTS_FILE
from dsharness.systems import SYSTEMS, Endpoint
from dsharness.systems.ldap.directory_system import STORED
from dsproducts.dirsrv.dirsrv import Dirsrv
from dsproducts.keycloak.identity_provider import (
    PORT,
    REALM,
    SITE,
    Keycloak,
    LoginEndpoint,
    realm_requests,
)
from dsproducts.keycloak.login_workload import LoginWorkload

LOAD = LOADS["loginload"]
NO_BOX: Container = None  # type: ignore[assignment] # nobody is asked
SERVER = LoginEndpoint(box=NO_BOX, port=Dirsrv.port, ports={"oidc": PORT}, users=Dirsrv.site)
RUN = """\
operations 3
seconds 0.250000
cpu 900
starved 0
time login 40000 2
time login 90000 1
step authorize 9000 3
step password 30000 2
step password 80000 1
finished
load ended with status 0
"""


def workload(**changes: object) -> LoginWorkload:
    facts = {"id": "w", "title": "a load", "users": 5, "distinct_users": 5}
    return LoginWorkload.model_validate(facts | changes)


def steps(line: str) -> list[tuple[str, str, list[str], str]]:
    """Of each step the status, the text that is looked for, what is asked, headers, content."""
    kind, *words = line.split(" ")
    assert kind == "login/authorize,password,token,userinfo"
    made = []
    for status, entries, page, body in zip(*(words[at::4] for at in range(4)), strict=True):
        assert (entries, page) == ("1", "-")
        found, _, request = bytes.fromhex(body).decode().partition("\n")
        head, _, content = request.partition("\r\n\r\n")
        asked, *headers = head.split("\r\n")
        made.append((f"{status} {found}", asked, headers, content))
    return made


def test_a_login_is_what_a_browser_and_a_site_ask_for() -> None:
    lines = LOAD.files(workload(), SERVER, 0)[REQUESTS_FILE].splitlines()
    form, password, token, whose = steps(lines[0])
    asked = urlsplit(form[1].split(" ")[1])
    query = {name: value for name, (value,) in parse_qs(asked.query).items()}
    name = query.pop("state")
    assert asked.path == f"/realms/{REALM}/protocol/openid-connect/auth"
    assert query == {
        "client_id": SERVER.client,
        "redirect_uri": SITE,
        "response_type": "code",
        "scope": "openid",
    }
    assert form[0] == '200 /login-actions/authenticate?\t"'
    assert password[0] == "302 code=\t&\r"
    assert password[1] == f"POST /realms/{REALM}/login-actions/authenticate?{{found}} HTTP/1.1"
    assert "Cookie: {cookies}" in password[2]
    given = parse_qs(password[3])
    assert (given["username"], given["password"]) == ([name], [Dirsrv.site.user_password])
    assert parse_qs(token[3])["code"] == ["{found}"]
    assert not any("Cookie" in header for header in token[2])
    assert whose[0] == f'200 "preferred_username":"{name}"'
    assert "Authorization: Bearer {found}" in whose[2]


def test_all_users_log_in_in_an_order_of_the_turn() -> None:
    first, again, other = (
        LOAD.files(workload(), SERVER, turn)[REQUESTS_FILE].splitlines() for turn in (0, 0, 1)
    )
    assert first == again != other
    assert sorted(first) == sorted(other)
    assert len(set(first)) == 5


def test_another_kind_of_server_logs_nobody_in() -> None:
    with pytest.raises(WorkloadError, match="logs users in, which this server does not do"):
        LOAD.files(workload(), Endpoint(port=1), 0)


def test_requests_are_timed_one_by_one_and_each_login_is_to_be_counted() -> None:
    report = LOAD.parse(RUN)
    assert (report.total, report.verified, report.exact) == (3, True, True)
    assert {name: times.count for name, times in report.steps.items()} == {
        "authorize": 3,
        "password": 3,
    }
    assert report.latencies["login"].count == 3
    assert [*LOAD.objections(report)] == []
    assert [*LOAD.objections(LOAD.parse(RUN.replace("finished\n", "")))] == [CUT]


def test_the_federation_is_added_to_a_realm_that_is_there() -> None:
    """Otherwise it has no mappers, and no user has a name."""
    requests = [*realm_requests("ou=people,dc=lab", 3389, "cn=service,dc=lab")]
    paths = [path for _, path, _ in requests]
    assert paths[0] == ""
    assert paths.index(f"/{REALM}/components") > 0
    assert paths[-1].endswith("sync?action=triggerFullSync")
    realm, federation = requests[0][2], requests[-2][2]
    assert realm is not None
    assert federation is not None
    assert "components" not in realm
    assert federation["parentId"] == realm["id"] == REALM
    assert federation["config"]["usersDn"] == ["ou=people,dc=lab"]
    assert json.loads(json.dumps(requests))


def test_a_login_costs_what_the_stored_password_costs() -> None:
    system = SYSTEMS["keycloak"]
    assert isinstance(system, Keycloak)
    (part,) = system.parts
    assert part.name == STORED.name
    assert {"bind", "login"} <= part.operations


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["[29/Nov/2026:1 +0000] - INFO - main - up", "the directory ended with status 139"],
         "the directory ended with status 139"),
        (["2026-11-29 22:00:00,1 ERROR [org.keycloak] (main) it is broken",
          "the identity provider ended with status 1"],
         "2026-11-29 22:00:00,1 ERROR [org.keycloak] (main) it is broken"),
        (["[29/Nov/2026:1 +0000] - EMERG - main - no disk",
          "the directory ended with status 1"], "EMERG - main - no disk"),
        (["nothing of interest"], None),
    ],
)  # fmt: skip
def test_it_says_which_of_both_ended_and_why(lines: list[str], reason: str | None) -> None:
    assert SYSTEMS["keycloak"].reason(lines) == reason


def test_a_server_of_someone_else_is_not_looked_at() -> None:
    with pytest.raises(InstanceError):
        SYSTEMS["keycloak"].look(Endpoint(port=1))
