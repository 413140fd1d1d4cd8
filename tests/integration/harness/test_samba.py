"""Samba as a domain controller: one server, asked over each of its three protocols."""

from __future__ import annotations

from typing import Any

import pytest
from benches import MATRIX, benched, golden_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.matrix import find_workload
from dsharness.measure.sample import take_sample
from dsharness.model import Settings, Workload

ROWS = {
    "samba-debian-13": "4.22.",
    "samba-debian-12": "4.17.",
    "samba-debian-11": "4.13.",
    "samba-debian-sid": "4.",
}
FEW = {"duration_s": 0.5, "most_s": 2.0, "operations": 40}


def small(name: str, **changes: Any) -> Workload:
    """One of the matrix's own loads, of few entries."""
    load = find_workload(MATRIX, name)
    return type(load).model_validate(load.model_dump() | FEW | changes)


USERS = {"users": 20, "distinct_users": 20}
LOADS = (
    small("samba-search", **USERS),
    small("kerberos-tcp", users=20),
    small("dns-live", names=20),
    small("samba-bind", **USERS),
    small("samba-bind", **USERS, over="ldaps", id="samba-bind-ldaps"),
    small("samba-group", **USERS, groups=1, members=20),
)
ALWAYS = {("samba-debian-13", "samba-search"), ("samba-debian-13", "kerberos-tcp")}
CASES = [
    pytest.param(
        row,
        load,
        id=f"{row}-{load.id}",
        marks=[] if (row, load.id) in ALWAYS else pytest.mark.whole,
    )
    for row in ROWS
    for load in LOADS
]


@pytest.mark.parametrize(("row", "load"), CASES)
def test_each_of_its_services_is_measured(engine: Engine, row: str, load: Workload) -> None:
    golden = golden_of(engine, row, content=load.content)
    assert str(golden.facts["version"]).startswith(ROWS[row])
    with benched(engine, golden, load.tool) as at:
        sample = take_sample(at, turn_of(load))
    assert sample.valid, sample.invalid
    assert sample.facts == golden.facts


@pytest.mark.whole
def test_its_database_and_the_processes_of_a_service_are_settings(engine: Engine) -> None:
    load = small("samba-search", users=20, distinct_users=20)
    options = {"database": "mdb", "prefork-children": "1"}
    settings = Settings(id="odd", options=options)
    golden = golden_of(engine, "samba-debian-13", settings, content=load.content)
    assert golden.facts["database"] == "mdb"
    with benched(engine, golden, load.tool) as at:
        processes = at.instance.container.must("sh", "-c", "cat /proc/[0-9]*/cmdline", what="list")
        sample = take_sample(at, turn_of(load))
    assert "task[ldap] pre-forked worker(0)" in processes
    assert "task[ldap] pre-forked worker(1)" not in processes
    assert sample.valid, sample.invalid
