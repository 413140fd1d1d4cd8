"""Keycloak over 389-ds: logins are binds, each request is timed, and each program is read."""

from __future__ import annotations

import pytest
from benches import MATRIX, benched, golden_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.matrix import find_workload
from dsharness.measure.sample import take_sample
from dsproducts.keycloak.login_workload import LoginWorkload

FEW = {"users": 20, "distinct_users": 20, "warmup_s": 10, "duration_s": 1, "operations": 40}
LOAD = LoginWorkload.model_validate(find_workload(MATRIX, "keycloak-login").model_dump() | FEW)
ROWS = {
    "keycloak-debian-12": "26.0.7",
    "keycloak-debian-11": "26.0.7",
    "keycloak-debian-13": "26.0.7",
    "keycloak-debian-sid": "26.0.7",
    "keycloak-20-debian-12": "20.0.5",
    "keycloak-22-debian-12": "22.0.5",
    "keycloak-24-debian-12": "24.0.5",
    "keycloak-26.7-debian-12": "26.7.3",
}
CASES = [
    pytest.param(row, version, marks=[] if number == 0 else pytest.mark.whole)
    for number, (row, version) in enumerate(ROWS.items())
]


@pytest.mark.parametrize(("row", "version"), CASES)
def test_a_login_is_four_requests_and_one_bind(engine: Engine, row: str, version: str) -> None:
    golden = golden_of(engine, row, content=LOAD.content)
    assert golden.facts["keycloak"] == version
    with benched(engine, golden, LOAD.tool) as at:
        sample = take_sample(at, turn_of(LOAD))
    assert sample.valid, sample.invalid  # the directory has counted each login, and no other bind
    assert sample.facts == golden.facts
    assert [*sample.steps] == ["authorize", "password", "token", "userinfo"]
    assert {times.count for times in sample.steps.values()} == {sample.operations}
    cpu_us = {name: use.cpu_us / sample.operations for name, use in sample.programs.items()}
    assert cpu_us["idp"] > cpu_us["directory"] > 0
    assert sample.programs["idp"].memory_kib > 200 * 1024
