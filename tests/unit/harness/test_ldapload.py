"""Requests as ldapload gets them, and how its output is read. The text is a real run's output."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldap3.operation.search import parse_filter

from dsharness.errors import WorkloadError
from dsharness.loads import ldap_request_bytes, ldapload
from dsharness.loads.load_driver import CUT, LoadReport, Operations, Schedule, Seconds, Worker
from dsharness.loads.own_load import REQUESTS_FILE
from dsharness.model import (
    SHARERS,
    USER_BIND,
    DirectoryContent,
    Latencies,
    LdaploadWorkload,
    largest,
)
from dsharness.model.ldap_requests import LdapStep, is_filter
from dsharness.systems.ldap.address import NamedUsers
from dsharness.systems.ldap.directory import LdapUser, Site
from dsharness.systems.ldap.directory_system import SOCKET_NAME, LdapEndpoint, OwnDirectory
from dsharness.systems.system import SHARED_FOLDER
from dsproducts.dirsrv.ns_slapd import import_task

LOAD = ldapload.Ldapload()
SITE = Site(suffix="dc=lab", people="ou=people,dc=lab", port=3389)
OWN = OwnDirectory(port=SITE.port, users=SITE, socket=Path("/nowhere"))
RUN = Path(__file__).parents[2] / "golden" / "ldapload" / "search-modify.txt"
SEARCH = {"kind": "search", "filter": "(&(uid={user})(cn=*))", "entries": 1, "share": 3}
MODIFY = {"kind": "modify", "base": "{user_dn}"}
NEW = {
    "kind": "add", "base": "{new_dn}",
    "then": [
        {"kind": "rename", "base": "{new_dn}", "value": "uid=x{value}"},
        {"kind": "delete", "base": "uid=x{value},{people}"},
    ],
}  # fmt: skip
LEAVE = {"kind": "modify", "change": "delete", "base": "{group_dn}", "attribute": "member"}


def workload(**changes: object) -> LdaploadWorkload:
    facts = {"id": "w", "title": "a load", "distinct_users": 20, "requests": [SEARCH, MODIFY]}
    return LdaploadWorkload.model_validate(facts | changes)


def lines(load: LdaploadWorkload, turn: int = 0) -> list[list[str]]:
    text = LOAD.files(load, OWN, turn)[REQUESTS_FILE]
    return [line.split(" ") for line in text.splitlines()]


Tree = list[Any]  # of each element its tag and its content, or the elements in it


def tree(data: bytes) -> Tree:
    """A request as a server takes it apart."""
    found: Tree = []
    while data:
        tag, begin, size = data[0], 2, data[1]
        if size > 0x80:
            begin += size & 0x7F
            size = int.from_bytes(data[2:begin], "big")
        content, data = data[begin : begin + size], data[begin + size :]
        assert len(content) == size
        found.append((tag, tree(content) if tag & 0x20 else content))
    return found


def asked_for(line: list[str], step: int = 0) -> Any:
    ((_, request),) = tree(bytes.fromhex(line[4 + 4 * step]))
    return request


def test_requests_are_what_the_workload_says() -> None:
    first, *asked = lines(workload())
    assert first[:4] == ["first", "0", "-", "-"]
    assert asked_for(first)[1:] == [
        (0x04, SITE.manager.encode()),
        (0x80, SITE.manager_password.encode()),
    ]
    assert [each[:3] for each in asked].count(["search", "0", "1"]) == 60
    assert [each[:3] for each in asked].count(["modify", "0", "-"]) == 20
    search = asked_for(next(each for each in asked if each[0] == "search"))
    assert search[:2] == [(0x04, SITE.people.encode()), (0x0A, b"\x02")]  # the whole tree
    (equal, present) = search[6][1]
    assert (equal[0], equal[1][0]) == (0xA3, (0x04, b"uid"))
    assert equal[1][1][1].startswith(b"user00000")
    assert present == (0x87, b"cn")
    entry, changes = asked_for(next(each for each in asked if each[0] == "modify"))
    assert entry[1].startswith(b"uid=user00000")
    assert entry[1].endswith(SITE.people.encode())
    ((_, (replace, (_, (name, (_, values))))),) = changes[1]
    assert (replace, name) == ((0x0A, b"\x02"), (0x04, b"description"))
    assert len(values[0][1]) == len(ldap_request_bytes.VALUE_MASK)
    assert ldap_request_bytes.VALUE_MASK.encode() not in values[0][1]


@pytest.mark.whole
def test_an_entry_is_added_renamed_and_deleted_in_one_operation() -> None:
    asked = lines(workload(requests=[NEW]))[1:]
    names = []
    for line in asked:
        assert (line[0], len(line)) == ("add+rename+delete", 1 + 4 * 3)
        entry, attributes = asked_for(line)
        name = entry[1].decode().removeprefix("uid=").removesuffix(f",{SITE.people}")
        known = {kind[1]: [value[1] for value in values[1]] for _, (kind, values) in attributes[1]}
        assert known[b"uid"] == known[b"cn"] == [name.encode()]
        assert b"inetOrgPerson" in known[b"objectClass"]
        renamed = asked_for(line, 1)
        assert renamed == [entry, (0x04, f"uid=x{name}".encode()), (0x01, b"\xff")]
        assert asked_for(line, 2) == f"uid=x{name},{SITE.people}".encode()
        names.append(name)
    assert len(set(names)) == len(names)
    assert len(names) > 1000  # until a name comes again, its entry is gone


def test_a_user_leaves_the_group_that_he_is_in() -> None:
    join = LEAVE | {"change": "add", "value": "{user_dn}"}
    load = workload(groups=4, members=5, requests=[LEAVE | {"value": "{user_dn}", "then": [join]}])
    groups = {
        SITE.user_dn(user): f"cn=group{number:07d},{SITE.people}"
        for number in range(4)
        for user in range(5 * number, 5 * number + 5)
    }
    for line in lines(load)[1:]:
        for step, change in enumerate((1, 0)):
            group, changes = asked_for(line, step)
            ((_, (how, (_, (_, (_, values))))),) = changes[1]
            assert (group[1].decode(), how[1]) == (groups[values[0][1].decode()], bytes([change]))


CALM = {"requests": [SEARCH, {"kind": "compare", "base": "{user_dn}"}], "connections": 3}


def test_a_disturber_has_connections_and_requests_of_its_own() -> None:
    load = workload(disturber=CALM)
    asked = lines(load)
    at = asked.index(["disturbers"])
    assert {each[0] for each in asked[1:at]} == {"search", "modify"}
    assert {each[0] for each in asked[at + 1 :]} == {"search", "compare"}
    argv = LOAD.argv(load, OWN, "/load", Seconds(seconds=1))
    assert options(argv, "--disturbers") == ["3"]
    assert load.operation == "search+modify"
    assert load.disturbed
    assert not workload().disturbed
    assert workload(requests=[SEARCH], disturber={"requests": [MODIFY]}).writes


AUTOBIND = {"kind": "connect", "then": [{"kind": "bind", "mechanism": "external"}]}


def test_a_disturber_may_come_another_way() -> None:
    load = workload(disturber={"requests": [AUTOBIND], "over": "ldapi"})
    assert not list(load.contradictions())
    assert load.needs == {"inetOrgPerson", "ldapi"}
    assert ["disturbers", f"unix://{SHARED_FOLDER}/{SOCKET_NAME}"] in lines(load)
    assert LOAD.argv(load, OWN, "/load", Seconds(seconds=1))[8].startswith("tcp://")
    same = workload(disturber=CALM | {"over": "ldap"})
    assert ["disturbers"] in lines(same)
    assert workload(disturber=CALM | {"over": "ldaps"}).content.encrypted


IMPORTS = {"requests": [{"kind": "import-task"}]}
CALM_IMPORTS = {"requests": [{"kind": "import-task", "imports": "suffix"}]}


def imports(disturber: dict[str, object]) -> tuple[LdaploadWorkload, list[list[str]]]:
    load = workload(requests=[SEARCH], imported=50, disturber=disturber)
    own = replace(OWN, import_task=import_task("/config"))
    text = LOAD.files(load, own, 0)[REQUESTS_FILE]
    every = [line.split(" ") for line in text.splitlines()]
    return load, every[every.index(["disturbers"]) + 1 :]


def test_an_import_is_asked_for_until_it_is_taken_and_until_it_has_ended() -> None:
    load, (line, *_) = imports(IMPORTS)
    assert not list(load.contradictions())
    assert (load.needs, load.writes, load.content.imported) == (
        {"inetOrgPerson", "import-task"},
        True,
        50,
    )
    assert line[0] == "import-task"
    assert [line[at : at + 3] for at in (1, 5, 9)] == [
        ["0", "until--", "-"], ["0", "until-1", "-"], ["0", "1", "-"],
    ]  # fmt: skip
    named = [each.replace(ldap_request_bytes.NAMED, b"0000001f".hex()) for each in line]
    assert all(each != other for each, other in zip(line[4::4], named[4::4], strict=True))
    task, attributes = asked_for(named)
    entry = b"cn=0000001f,cn=import,cn=tasks,cn=config"
    assert task == (0x04, entry)
    known = {kind[1]: [value[1] for value in values[1]] for _, (kind, values) in attributes[1]}
    assert known[b"nsInstance"] == [b"imported"]
    assert known[b"nsFilename"] == [b"/config/imported.ldif"]
    ended, succeeded = (asked_for(named, step) for step in (1, 2))
    assert ended[:2] == succeeded[:2] == [(0x04, entry), (0x0A, b"\x00")]
    assert ended[6] == (0x87, b"nsTaskExitCode")
    assert succeeded[6] == (0xA3, [(0x04, b"nsTaskExitCode"), (0x04, b"0")])


def test_the_control_of_an_import_is_the_same_but_for_its_file() -> None:
    (load, imported), (calm, nothing) = imports(IMPORTS), imports(CALM_IMPORTS)
    assert load.content == calm.content
    assert len(imported) == len(nothing)
    one, other = (
        str(asked_for([*line[:4], line[4].replace(".", "3")])) for line in (imported[0], nothing[0])
    )
    assert other == one.replace("/config/imported.ldif", "/config/imported-suffix.ldif")
    assert "suffix" in str(calm.disturber)


@pytest.mark.parametrize(
    ("changes", "name", "allowed"),
    [
        ({"imported": 5}, "imported", "users together with"),
        ({"disturber": IMPORTS}, "imported", "users together with"),
        ({"requests": [{"kind": "import-task"}], "imported": 5}, "requests", "in the `disturber`"),
        ({"requests": [SEARCH | {"imports": "suffix"}]}, "requests", "`imports` with `kind: imp"),
        ({"imported": 5, "disturber": IMPORTS, "bound_as": "user"}, "bound_as", "`manager` with"),
    ],
)
def test_imports_that_cannot_be(changes: dict[str, object], name: str, allowed: str) -> None:
    load = workload(**{"requests": [SEARCH], **changes})
    assert [allowed in text for at, text in load.contradictions() if at == name] == [True]


def test_a_server_that_imports_nothing_while_it_runs_is_refused() -> None:
    load = workload(requests=[SEARCH], imported=50, disturber=IMPORTS)
    with pytest.raises(WorkloadError, match="cannot do while it runs"):
        LOAD.files(load, OWN, 0)


def test_a_disturber_that_had_no_answer_disturbed_nothing() -> None:
    text = "operations 3\nseconds 0.1\ncpu 5\ndisturbances {}\nfinished\nload ended with status 0\n"
    some, none = (LOAD.parse(text.format(number)) for number in (7, 0))
    assert (some.disturbances, none.disturbances) == (7, 0)
    assert not list(LOAD.objections(some))
    assert list(LOAD.objections(none)) == ["what should disturb the load had no answer"]
    assert LOAD.parse(RUN.read_text(encoding="utf-8")).disturbances is None


def test_a_login_binds_as_its_user_and_as_the_manager_again() -> None:
    binds = [{"kind": "bind", "base": "{user_dn}"}, {"kind": "bind", "base": "{manager}"}]
    load = workload(requests=[SEARCH | {"then": binds}])
    for line in lines(load)[1:]:
        name = asked_for(line)[6][1][0][1][1][1]
        dn = f"uid={name.decode()},{SITE.people}"
        assert asked_for(line, 1)[1:] == [(0x04, dn.encode()), (0x80, SITE.user_password.encode())]
        manager = [(0x04, SITE.manager.encode()), (0x80, SITE.manager_password.encode())]
        assert asked_for(line, 2)[1:] == manager
    assert load.content.passwords == load.distinct_users == 20
    assert workload().content.passwords == 1


def test_a_server_is_asked_to_sort_and_must() -> None:
    line = lines(workload(requests=[SEARCH | {"sort": "cn"}]))[1]
    _, (controls, ((_, (kind, critical, value)),)) = tree(bytes.fromhex(line[4]))
    assert (controls, kind[1].decode(), critical[1]) == (0xA0, ldap_request_bytes.SORT, b"\xff")
    assert tree(value[1]) == [(0x30, [(0x30, [(0x04, b"cn")])])]


def test_a_part_of_a_sorted_list_is_asked_for_by_its_place() -> None:
    asked = SEARCH | {"sort": "cn", "window": {"first": 1000, "entries": 20}}
    line = lines(workload(requests=[asked]))[1]
    _, (_, (_, (_, (kind, critical, value)))) = tree(bytes.fromhex(line[4]))
    assert (kind[1].decode(), critical[1]) == (ldap_request_bytes.WINDOW, b"\xff")
    place = (0xA0, [(0x02, (1000).to_bytes(2)), (0x02, b"\0")])
    assert tree(value[1]) == [(0x30, [(0x02, b"\0"), (0x02, b"\x13"), place])]


def test_a_filter_has_as_many_branches_as_it_says() -> None:
    line = lines(workload(requests=[{"filter": "(|{nobodies:300}(uid={user}))"}]))[1]
    branches = asked_for(line)[6][1]
    assert len(branches) == 301
    assert len({each[1][1][1] for each in branches}) == 301
    assert branches[-1][1][1][1].startswith(b"user00000")


def test_connections_are_a_user_s_where_that_is_asked_for() -> None:
    load = workload(requests=[SEARCH], bound_as="user")
    assert asked_for(lines(load)[0])[1:] == [
        (0x04, SITE.user_dn(0).encode()),
        (0x80, SITE.user_password.encode()),
    ]


def test_values_are_shared_by_as_many_users_as_are_asked_for() -> None:
    """What a load asks for is in as many entries as ``SHARERS`` says, whoever it is."""
    attributes = {"surname": "sn", "given_name": "givenName", "phone": "telephoneNumber"}
    have = [SITE.user_attributes(number) for number in range(400)]
    for place, attribute in attributes.items():
        load = workload(
            users=400, distinct_users=400, requests=[{"filter": f"({attribute}={{{place}}})"}]
        )
        assert not list(load.contradictions())
        for line in lines(load)[1:]:
            (_, name), (_, value) = asked_for(line)[6][1]
            assert name.decode() == attribute
            assert sum(each[attribute] == [value.decode()] for each in have) == SHARERS[place]


def test_every_user_is_asked_for_as_often() -> None:
    named = [asked_for(each)[6][1][0][1][1][1] for each in lines(workload(requests=[SEARCH]))[1:]]
    assert {named.count(each) for each in named} == {3}
    assert len(set(named)) == 20


@pytest.mark.whole
def test_long_requests_are_fewer_and_a_request_of_each_kind_is_there() -> None:
    long = SEARCH | {"filter": "(|" + "(cn=x)" * 10_000 + "(uid={user}))"}
    asked = lines(workload(requests=[long, MODIFY], users=1000, distinct_users=1000))[1:]
    assert {each[0] for each in asked} == {"search", "modify"}
    assert sum(len(each[4]) for each in asked) < ldapload.MOST_BYTES


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_turn_has_an_order_of_its_own(turn: int, other: int) -> None:
    load = workload()
    assert (lines(load, turn) == lines(load, other)) == (turn == other)


def options(argv: list[str], flag: str) -> list[str]:
    return [value for name, value in pairwise(argv) if name == flag]


@pytest.mark.parametrize(
    ("extent", "flags"),
    [
        (Operations(per_thread=12, limit_s=10), {"--operations": ["48"], "--rate": []}),
        (Seconds(seconds=2), {"--seconds": ["2"], "--operations": []}),
        (
            Schedule(per_second=2000, seconds=1.5),
            {"--rate": ["2000"], "--operations": ["3000"], "--seconds": []},
        ),
    ],
)
def test_the_load_is_what_the_extent_says(extent: Any, flags: dict[str, list[str]]) -> None:
    argv = LOAD.argv(workload(), OWN, "/load", extent)
    assert argv[0] == "timeout"
    assert {flag: options(argv, flag) for flag in flags} == flags
    assert float(options(argv, "--limit")[0]) > extent.limit_s


def test_workers_have_addresses_of_their_own() -> None:
    taken: set[int] = set()
    for number in range(1, LOAD.most_workers + 1):
        worker = Worker(number=number, seconds=30, per_second=200)
        argv = LOAD.live_argv(workload(), OWN, "/load", worker)
        (first,), (count,) = (options(argv, each) for each in ("--first", "--addresses"))
        block = set(range(int(first), int(first) + int(count)))
        assert not block & taken
        taken |= block
        assert (options(argv, "--rate"), options(argv, "--seconds")) == (["200"], ["30"])
        assert float(options(argv, "--limit")[0]) > 30
    assert taken <= set(range(1, 255))
    alone = LOAD.live_argv(workload(), OWN, "/load", Worker(number=1, seconds=30))
    assert options(alone, "--rate") == []


def test_users_that_someone_named_bind_on_connections_of_their_own() -> None:
    named = [LdapUser(dn=f"cn={name},dc=others", password=f"{name}-secret") for name in "abc"]
    server = LdapEndpoint(host="127.0.0.1", port=389, users=NamedUsers(users=tuple(named)))
    load = workload(users=3, distinct_users=3, requests=[USER_BIND])
    text = LOAD.files(load, server, 1)[REQUESTS_FILE]
    first, *binds = [line.split(" ") for line in text.splitlines()]
    assert first == ["first", "0", "-", "-", ""]
    assert {line[0] for line in binds} == {"connect+bind"}
    worker = Worker(number=1, seconds=30, per_second=5)
    assert options(LOAD.live_argv(load, server, "/load", worker), "--errors") == ["1"]
    assert options(LOAD.live_argv(workload(), OWN, "/load", worker), "--errors") == []
    assert all(line[1:5] == ["0", "-", "-", "connect"] for line in binds)
    bodies = [bytes.fromhex(line[8]) for line in binds]
    for user in named:
        assert sum(user.dn.encode() in each and user.password.encode() in each
                   for each in bodies) == 1  # fmt: skip
    with pytest.raises(WorkloadError, match="only for directories that the lab made"):
        LOAD.files(workload(), server, 1)


def test_a_directory_of_others_is_refused() -> None:
    with pytest.raises(WorkloadError, match="only for directories that the lab made"):
        LOAD.files(workload(), LdapEndpoint(port=389, users=SITE), 0)


def test_a_real_run_is_read() -> None:
    report = LOAD.parse(RUN.read_text(encoding="utf-8"))
    assert report.verified
    assert (report.exit_status, report.errors) == (0, {})
    assert report.total == sum(each.count for each in report.latencies.values())
    assert set(report.latencies) == {"search", "modify"}
    assert report.active_s
    assert report.client_cpu_us
    assert report.client_cpu_us < report.active_s * 1e6


def test_what_was_wrong_is_an_error_each() -> None:
    report = LOAD.parse(
        "operations 3\nseconds 0.1\ncpu 5\nerror 2 search: 0 entries instead of 1\n"
        "error 1 modify: result 32 instead of 0\nfinished\nload ended with status 0\n"
    )
    assert report.errors == {
        "search: 0 entries instead of 1": 2,
        "modify: result 32 instead of 0": 1,
    }


def test_a_run_that_was_cut_off_verified_nothing() -> None:
    report = LOAD.parse("failed cannot connect: refused\nload ended with status 2\n")
    assert not report.verified
    assert report.total is None
    assert list(report.errors) == ["cannot connect: refused"]
    whole = RUN.read_text(encoding="utf-8")
    assert CUT not in LOAD.objections(LOAD.parse(whole))
    cut = whole[: whole.rindex("time ") + 8] + "\nload ended with status 0\n"
    assert list(LOAD.objections(LOAD.parse(cut))) == [CUT]


@pytest.mark.parametrize(("late_us", "objected"), [(100.0, False), (5000.0, True)])
def test_a_load_that_did_not_keep_its_schedule_objects(late_us: float, objected: bool) -> None:
    report = LoadReport(late=Latencies.of({late_us: 100}))
    assert bool(list(LOAD.objections(report))) is objected
    assert not list(LOAD.objections(LoadReport()))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"users": 10}, "distinct_users"),
        ({"members": 1001}, "members"),
        ({"requests": [LEAVE], "groups": 3, "members": 6}, "groups"),
        ({"requests": [{"kind": "wait"}]}, "scheduled"),
        ({"disturber": {"requests": [{"kind": "wait"}]}, "scheduled": 1}, "disturber"),
        ({"disturber": {"requests": [{"kind": "delete", "page": 1}]}}, "disturber"),
        ({"requests": [{"kind": "wait", "then": [MODIFY]}], "scheduled": 1}, "requests"),
        ({"requests": [SEARCH | {"then": [{"filter": "(uid={usr})"}]}]}, "requests"),
        ({"requests": [{"kind": "compare", "page": 10}]}, "requests"),
        ({"bound_as": "user"}, "bound_as"),
        ({"requests": [SEARCH | {"sort": "cn", "page": 10}]}, "requests"),
        ({"requests": [SEARCH | {"window": {"first": 1, "entries": 5}}]}, "requests"),
        ({"requests": [{"kind": "bind"}]}, "requests"),
        ({"requests": [{"filter": "(|{nobodies}(uid={user}))"}]}, "requests"),
        ({"requests": [{"filter": "(|{nobodies:99999}(uid={user}))"}]}, "requests"),
        ({"requests": [{"filter": "(sn={surname})"}], "users": 52}, "users"),
        ({"requests": [{"filter": "(uid={user!r})"}]}, "requests"),
        ({"requests": [{"filter": "(uid={usr})"}]}, "requests"),
        ({"requests": [{"base": "{people"}]}, "requests"),
        ({"requests": [{"kind": "connect"}]}, "requests"),  # and then asks for nothing
        ({"requests": [SEARCH | {"then": [{"kind": "connect"}]}]}, "requests"),
        ({"requests": [{"kind": "connect", "then": [{"filter": "(cn=*)"}]}, SEARCH]}, "requests"),
        ({"requests": [SEARCH | {"mechanism": "plain"}]}, "requests"),
        ({"requests": [{"kind": "bind", "base": "{manager}", "mechanism": "plain"}]}, "requests"),
        ({"requests": [{"kind": "bind", "mechanism": "external"}], "over": "ldaps"}, "over"),
        ({"disturber": {"requests": [AUTOBIND], "over": "ldaps"}}, "disturber"),
        ({"plugins": ["dna", "dna"]}, "plugins"),
        ({"control": "calm"}, "control"),  # without a disturber
        ({"pauses_ms": [5.0], "scheduled": 10}, "pauses_ms"),
        ({"pauses_ms": [5000.0]}, "pauses_ms"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(changes: dict[str, object], name: str) -> None:
    assert [each for each, _ in workload(**changes).contradictions()] == [name]
    assert not list(workload().contradictions())


CONNECT = {"kind": "connect", "then": [{"kind": "bind", "base": "{user_dn}"}]}


@pytest.mark.parametrize(
    "text",
    [
        "((uid={user}", "(uid=*)(cn=*)", "uid={user}", "", "()", "(uid)", "(&)", "(&(uid=a)",
        "(uid=a))", "(&" * 50 + "(a=b)" + ")" * 50,
        "(uid=(a))", "(!(uid=a)(cn=b))", "(&uid=a)", "(uid=a)x", "(&(uid=a)x)", "(a=b(c=d))",
        "(=a)", "{nobodies:2}",
    ],
)  # fmt: skip
def test_a_filter_that_no_server_reads_is_refused(text: str) -> None:
    for step in ({"filter": text}, {"then": [{"filter": text}]}):
        told = list(workload(requests=[{"kind": "search", **step}]).contradictions())
        assert [(name, "a filter in brackets" in allowed) for name, allowed in told] == [
            ("requests", True)
        ]


@pytest.mark.parametrize(
    "text",
    [
        "(uid={user})", " ( & (uid={user}) (! (cn=a)) ) ", "(|{nobodies:5000})", "(cn=a*b*c)",
        "(cn:dn:2.5.13.5:=a & b!)", "(cn~=a)", "(uidNumber>=5)", "(cn=\\28a\\29)", "(cn;lang-de=)",
        "(&" * 49 + "(a=b)" + ")" * 49, "(|" + "(uid=someone)" * 5_000 + ")",
    ],
)  # fmt: skip
def test_a_filter_may_be_long_or_deep(text: str) -> None:
    assert not list(workload(requests=[{"kind": "search", "filter": text}]).contradictions())


@given(st.text("()&|!a= *", max_size=16))
def test_what_is_taken_for_a_filter_can_be_sent(text: str) -> None:
    if is_filter(text):
        parse_filter(text, None, True, True, None, False)


def test_an_operation_may_begin_with_a_connection_of_its_own() -> None:
    line = lines(workload(requests=[CONNECT]))[1]
    assert line[:6] == ["connect+bind", "0", "-", "-", "connect", "0"]
    assert asked_for(line, 1)[1][1].decode() in {SITE.user_dn(each) for each in range(20)}
    plain = {"kind": "bind", "base": "{user_dn}", "mechanism": "plain"}
    sasl = asked_for(lines(workload(requests=[plain]))[1])[2][1]
    assert sasl[0] == (0x04, b"PLAIN")
    name, password = sasl[1][1].decode().split("\0")[1:]
    assert (name[:7], password) == ("user000", SITE.user_password)
    external = {"kind": "bind", "mechanism": "external"}
    load = workload(requests=[external], over="ldapi")
    assert not list(load.contradictions())
    assert asked_for(lines(load)[1])[2][1] == [(0x04, b"EXTERNAL")]


def test_only_who_binds_as_users_needs_their_passwords() -> None:
    manager = CONNECT | {"then": [{"kind": "bind", "base": "{manager}"}]}
    assert [workload(requests=[each]).content.passwords for each in (CONNECT, manager)] == [20, 1]


@pytest.mark.parametrize(
    ("over", "url"),
    [
        ("ldap", "tcp://127.0.0.1:3389"),
        ("starttls", "starttls://127.0.0.1:3389"),
        ("ldaps", "tls://127.0.0.1:6636"),
        ("ldapi", "unix:///run/dsbisect/ldapi"),
    ],
)
def test_connections_go_where_the_workload_says(over: str, url: str) -> None:
    own = replace(OWN, secure_port=6636)
    load = workload(over=over)
    assert url in LOAD.argv(load, own, "/load", Seconds(seconds=1))
    assert load.content.encrypted == (over in {"ldaps", "starttls"})
    assert load.needs == {"inetOrgPerson", over} - {"ldap"}


def test_what_is_as_by_default_changes_the_name_of_nothing() -> None:
    """Samples and golden states of loads without these are found as before."""
    assert not {"over", "plugins"} & workload().model_dump().keys()
    assert "mechanism" not in workload().model_dump()["requests"][0]
    assert not {"encrypted", "plugins"} & DirectoryContent().model_dump().keys()


def test_ports_are_told_and_too_few_of_them_are_no_fault_of_a_server() -> None:
    text = "operations 3\nports 14116 addresses 2 waiting 0 3\nfinished\n"
    some = LOAD.parse(text).ports
    assert some is not None
    assert (some.of_address, some.addresses) == (14116, 2)
    assert (some.waiting_before, some.waiting_after) == (0, 3)
    short = "too few ports: 9 connections, 0 left of 500 for each of 1 addresses"
    none = LOAD.parse(f"failed {short}\nload ended with status 2\n")
    assert list(LOAD.objections(none)) == [short]


def test_a_second_of_nothing_is_an_operation() -> None:
    load = workload(requests=[{"kind": "wait"}], scheduled=1, silent=7)
    assert lines(load)[1:] == [["wait", "0", "-", "-", ""]] * 20
    half = Schedule(per_second=1, seconds=2.5)
    argv = LOAD.argv(load, OWN, "/load", half)
    assert options(argv, "--silent") == ["7"]
    assert options(argv, "--operations") == [str(half.total(load.threads))]


def test_a_search_by_pages_has_the_size_of_a_page() -> None:
    load = workload(requests=[SEARCH | {"page": 100}])
    assert {tuple(each[:4]) for each in lines(load)[1:]} == {("search", "0", "1", "100")}


def test_a_directory_is_filled_with_what_all_its_workloads_need() -> None:
    some = workload(users=50, groups=3, members=20), workload(users=70, photo_bytes=9)
    whole = largest(each.content for each in some)
    assert whole == DirectoryContent(
        number=70, passwords=1, groups=3, members=20, photo_bytes=9
    )  # fmt: skip
    everyone = largest([*(each.content for each in some), DirectoryContent(number=10)])
    assert isinstance(everyone, DirectoryContent)
    assert everyone.passwords > everyone.number


def test_a_request_is_told_with_all_that_is_sent() -> None:
    search, modify = workload(requests=[SEARCH | {"attributes": ["cn", "uid"]}, MODIFY]).requests
    assert str(modify) == "modify {user_dn}: replace description {value}"
    assert str(search) == (
        "search {people}, filter (&(uid={user})(cn=*)), scope subtree, attributes cn uid, "
        "entries 1 (share 3)"
    )
    (new,) = workload(requests=[NEW]).requests
    assert str(new) == (
        "add {new_dn}, then rename {new_dn} to uid=x{value}, then delete uid=x{value},{people}"
    )
    lines = workload(requests=[SEARCH, MODIFY], disturber={"requests": [AUTOBIND]}).request_lines
    assert [line.split(",")[0] for line in lines] == [
        "3 of 4: search {people}",
        "1 of 4: modify {user_dn}: replace description {value}",
        "meanwhile connect",
    ]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"kind": "compare", "base": "{user_dn}"}, "compare description of {user_dn} with {value}"),
        ({"kind": "search", "result": 32, "page": 5}, "in pages of 5, answered by result 32"),
        ({"kind": "search", "sort": "cn", "window": {"first": 9, "entries": 2}}, "2 from 9 on"),
        ({"kind": "bind", "mechanism": "external"}, "bind as who opened the socket"),
        ({"kind": "bind", "base": "{manager}"}, "bind as {manager} by its password (simple)"),
        ({"kind": "import-task", "imports": "suffix"}, "import-task of suffix"),
        ({"kind": "wait"}, "wait"),
    ],
)
def test_each_kind_of_request_has_its_words(step: dict[str, object], told: str) -> None:
    assert told in str(LdapStep.model_validate(step))


@pytest.mark.parametrize(
    ("title", "users", "distinct", "size", "told"),
    [
        (
            "5 of 10,000 users", 10_000, 10_000, 100_000,
            "5 of 100,000 users; it asks for 10,000 of them",
        ),
        ("5 of 10000 users", 10_000, 10_000, 2_000, "5 of 2,000 users"),
        ("all 20 groups of 5,000", 5_000, 9, 6_000, "all 20 groups of 6,000"),
        ("binds of one user", 1_000, 1, 50, "binds of one user, in a directory of 50 users"),
        ("a photo of 20 MB", 20, 20, 40, "a photo of 20 MB, in a directory of 40 users"),
    ],
)  # fmt: skip
def test_a_load_of_another_size_says_which(
    title: str, users: int, distinct: int, size: int, told: str
) -> None:
    load = workload(title=title, users=users, distinct_users=distinct)
    assert load.sized(size).title == told


def test_only_changes_write() -> None:
    assert workload().writes
    assert workload().operation == "search+modify"
    assert workload(requests=[SEARCH | {"then": [MODIFY]}]).writes
    assert not workload(requests=[SEARCH]).writes
