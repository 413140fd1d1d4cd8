"""A real 389-ds: reached over its socket and with encryption, and with plugins switched on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benches import MATRIX, Bench, benched, connected, golden_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.matrix import find_workload
from dsharness.measure.sample import take_sample
from dsharness.model import LdaploadWorkload, Sample, Settings
from dsharness.model.content import DirectoryPlugin
from dsharness.systems import SYSTEMS
from dsharness.systems.ldap.directory_system import DESCRIPTORS
from dsharness.systems.system import ConnectionHolder
from dsproducts.dirsrv.dirsrv import CONFIG_FOLDER
from dsproducts.dirsrv.ns_slapd import IMPORTED_SUFFIX, import_task, replica_of

SHORT = {"users": 5, "distinct_users": 5, "duration_s": 0.5, "most_s": 1.0, "operations": 20}
AS_MANAGER = {"kind": "search", "base": "cn=config", "scope": "base", "filter": "(cn=*)"}

WAYS = (
    "connect-starttls", "connect", "connect-ldapi", "connect-ldaps", "connect-plain",
    "search-ldaps",
)  # fmt: skip


def workload(name: str, **changes: object) -> LdaploadWorkload:
    found = find_workload(MATRIX, name)
    assert isinstance(found, LdaploadWorkload)
    return LdaploadWorkload.model_validate(found.model_dump() | SHORT | changes)


@pytest.fixture(scope="module")
def at(engine: Engine) -> Iterator[Bench]:
    content = workload("connect-plain").content
    assert content.encrypted
    with benched(engine, golden_of(engine, "debian-13", content=content), "ldapload") as made:
        yield made


def sample(at: Bench, load: LdaploadWorkload) -> Sample:
    return take_sample(at, turn_of(load))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", WAYS)
def test_it_answers_however_it_is_reached(at: Bench, name: str) -> None:
    found = sample(at, workload(name))
    assert found.valid, found.invalid
    assert found.operations >= 5  # of `connect-plain` each hashes a password


def test_who_opens_the_socket_is_the_manager(at: Bench) -> None:
    """Nobody else may read that entry."""
    bind = {"kind": "bind", "mechanism": "external"}
    asks = {"kind": "connect", "then": [bind, AS_MANAGER | {"entries": 1}]}
    found = sample(at, workload("connect-autobind", requests=[asks]))
    assert found.valid, found.invalid
    nobody = {"kind": "connect", "then": [AS_MANAGER | {"entries": 0}]}
    assert sample(at, workload("connect-autobind", requests=[nobody])).valid


@pytest.mark.whole
@pytest.mark.parametrize("row", ["debian-13", "debian-13-openldap"])
def test_a_server_holds_as_many_connections_as_its_settings_leave_room_for(
    engine: Engine, row: str
) -> None:
    load = workload("search-connections-2000")
    settings = Settings(id="few", options={DESCRIPTORS: "512"})
    golden = golden_of(engine, row, settings, content=load.content)
    system = SYSTEMS[golden.system]
    assert isinstance(system, ConnectionHolder)
    room = system.most_connections(settings)
    assert room is not None
    with benched(engine, golden, "ldapload") as at:
        most = load.model_copy(update={"id": "most", "silent": room - load.threads})
        found = sample(at, most)
        assert found.valid, found.invalid
        more = load.model_copy(update={"id": "more", "silent": 512})
        assert not sample(at, more).valid


def imported(at: Bench) -> int:
    with connected(at.instance) as directory:
        return len(list(directory.below(IMPORTED_SUFFIX)))


@pytest.mark.whole
@pytest.mark.parametrize("row", ["debian-11", "debian-13"])
def test_a_server_imports_again_and_again_while_others_ask_it(engine: Engine, row: str) -> None:
    """Berkeley DB and LMDB: what was imported last is there, and what others asked for as well."""
    load = workload("disturbed-import", imported=300, duration_s=3.0)
    with benched(engine, golden_of(engine, row, content=load.content), "ldapload") as at:
        found = sample(at, load)
        assert found.valid, found.invalid
        assert found.latencies.keys() == {"search"}
        assert load.disturber is not None
        assert imported(at) == 302  # with the suffix and the entry above all users
        nothing = load.disturber.requests[0].model_copy(update={"imports": "suffix"})
        calm = load.disturber.model_copy(update={"requests": (nothing,)})
        found = sample(at, load.model_copy(update={"disturber": calm, "id": "calm"}))
        assert found.valid, found.invalid
        assert imported(at) == 1
        at.instance.container.must("rm", import_task(CONFIG_FOLDER).files["users"], what="a fault")
        (reason,) = sample(at, load).invalid
        assert "disturber, import-task, step 3: 0 entries instead of 1" in reason


@pytest.mark.whole
def test_plugins_work_while_the_directory_is_filled_and_after(engine: Engine) -> None:
    # one connection: of five users two would meet in the same group on a busy machine
    load = workload("write-members-memberof", plugins=list(DirectoryPlugin), members=5, threads=1)
    with benched(engine, golden_of(engine, "debian-13", content=load.content), "ldapload") as at:
        with connected(at.instance) as directory:
            user = directory.read(directory.site.user_dn(0), "memberOf")
            before = len(list(directory.children("cn=changelog", "changeNumber")))
        assert len(user["memberOf"]) == load.groups
        found = sample(at, load)
        assert found.valid, found.invalid
        with connected(at.instance) as directory:
            after = len(list(directory.children("cn=changelog", "changeNumber")))
            vector = directory.read(replica_of(directory), "nsds50ruv")["nsds50ruv"]
            directory.add_plain_user(load.users)
            new = directory.read(directory.site.user_dn(load.users), "employeeNumber")
    assert after - before >= 2 * found.operations
    assert any(each.startswith("{replica 1") for each in vector)
    assert int(new["employeeNumber"][0]) >= 1000
