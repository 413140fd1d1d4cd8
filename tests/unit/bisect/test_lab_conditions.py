"""What does not go together is said before anything is built."""

from __future__ import annotations

import pytest
from shipped import MATRIX

from dsharness.errors import UsageError, WorkloadError
from dsharness.machine.host import CpuShares
from dsharness.matrix import find_workload
from dsharness.measure.ways import Importing, InTurn
from dsharness.model import LdcltWorkload, Settings, SystemName, Workload
from dslab.lab_conditions import LabConditions, default_workloads

BINDS = LdcltWorkload(id="bind-one", title="binds")
DEFAULT = Settings(id="default")


def refuse_unfit(workload: Workload, settings: Settings, system: SystemName = "dirsrv") -> None:
    way = InTurn(cpus=CpuShares(server=(0,), load=(0,), pinned=False))
    conditions = LabConditions(
        matrix=MATRIX, settings=settings, workloads=(BINDS, workload), way=way
    )
    conditions.refuse_unfit("debian-12", system)


def test_what_fits_is_let_pass():
    scheme = Settings(id="ssha", options={"password-scheme": "SSHA512"})
    for settings in (DEFAULT, scheme):
        refuse_unfit(BINDS, settings)


def test_an_option_that_the_server_does_not_know_is_named_with_those_it_knows():
    wrong = Settings(id="fast", options={"password-schema": "SSHA512"})
    with pytest.raises(UsageError, match=r"'fast' set 'password-schema'.*'debian-12'") as caught:
        refuse_unfit(BINDS, wrong)
    assert "password-scheme" in caught.value.hint


def test_a_load_of_another_protocol_is_refused_with_those_that_would_do():
    dns = find_workload(MATRIX, "dns-udp")
    with pytest.raises(UsageError, match=r"'dns-udp' uses dns, but 'debian-12'") as caught:
        refuse_unfit(dns, DEFAULT)
    assert "bind-one" in caught.value.hint
    assert "dns-tcp" not in caught.value.hint


def test_an_import_is_refused_where_the_lab_makes_none():
    load = find_workload(MATRIX, "import")
    for system in ("dirsrv", "dirsrv-tree", "openldap"):
        refuse_unfit(load, DEFAULT, system)
    with pytest.raises(UsageError, match="'import' imports users into a stopped server"):
        refuse_unfit(load, DEFAULT, "freeipa")


def test_what_a_load_needs_is_refused_where_a_server_does_not_offer_it():
    missing = {"connect-ldaps": "ldaps", "write-mix-dna": "dna", "disturbed-import": "import-task"}
    for name, what in missing.items():
        load = find_workload(MATRIX, name)
        refuse_unfit(load, DEFAULT, "dirsrv-tree")
        with pytest.raises(UsageError, match=f"{name!r} needs {what}, which the lab cannot have"):
            refuse_unfit(load, DEFAULT, "openldap")
    refuse_unfit(find_workload(MATRIX, "connect-ldapi"), DEFAULT, "openldap")


def test_more_connections_than_a_server_has_room_for_are_refused_with_what_would_do():
    load = find_workload(MATRIX, "search-connections-2000")
    few, many = DEFAULT, Settings(id="many", options={"descriptors": "4096"})
    refuse_unfit(load, many, "openldap")
    refuse_unfit(find_workload(MATRIX, "search-connections"), few, "openldap")
    for system in ("dirsrv", "dirsrv-tree"):
        refuse_unfit(load, few, system)
    words = r"holds 2,004 connections, but with settings 'default'.* has room for 960"
    with pytest.raises(UsageError, match=words) as caught:
        refuse_unfit(load, few, "openldap")
    assert "more `descriptors`" in caught.value.hint


def together(*names: str) -> LabConditions:
    loads = tuple(find_workload(MATRIX, name) for name in names)
    way = InTurn(cpus=CpuShares(server=(0,), load=(0,), pinned=False))
    return LabConditions(matrix=MATRIX, settings=DEFAULT, workloads=loads, way=way)


def test_one_server_has_the_plugins_of_all_its_loads():
    for names in (("write-mix", "write-mix-dna"), ("disturbed-calm", "disturbed-import")):
        with pytest.raises(WorkloadError, match="servers with other plugins or imports"):
            _ = together(*names).seed
    content = together("disturbed-import", "disturbed-import-calm").seed.content
    assert content == find_workload(MATRIX, "disturbed-import").content


def test_imports_of_several_sizes_begin_with_the_same_state():
    loads = tuple(find_workload(MATRIX, f"import@{users}") for users in (10, 20))
    way = Importing(cpus=CpuShares(server=(0,), load=(0,), pinned=False))
    both = LabConditions(matrix=MATRIX, settings=DEFAULT, workloads=loads, way=way)
    assert both.seed.content.number == 1
    assert [load.users for load in loads] == [10, 20]


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        (["debian-12", "debian-13"], ["bind-random", "bind-one"]),
        (["debian-13-openldap"], ["bind-random", "bind-one"]),
        (["debian-12-bind", "debian-13-bind"], ["dns-udp"]),
        (["debian-13", "debian-13-bind"], ["bind-random", "bind-one"]),  # refused when it is tried
    ],
)
def test_the_default_workload_fits_what_is_searched(rows, chosen):
    found = default_workloads(MATRIX, [MATRIX.row(row).system for row in rows])
    assert [workload.id for workload in found] == chosen


def test_two_sizes_are_not_measured_on_one_server():
    way = InTurn(cpus=CpuShares(server=(0,), load=(0,), pinned=False))
    loads = tuple(find_workload(MATRIX, f"search-equality@{users}") for users in (10, 20))
    both = LabConditions(matrix=MATRIX, settings=DEFAULT, workloads=loads, way=way)
    with pytest.raises(WorkloadError, match="search-equality@10, search-equality@20"):
        _ = both.seed
    alone = LabConditions(matrix=MATRIX, settings=DEFAULT, workloads=loads[:1], way=way)
    assert alone.seed.content.number == 10
