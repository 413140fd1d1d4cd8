"""Which steps a validation has for a product: with a suite of its own, another's, or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shipped import MATRIX
from validations import ENGINE, ROW, Told, question_of, sides_of, steps_in, tools_of

from dsharness.errors import InstanceError, UsageError
from dsharness.matrix import find_workload
from dsharness.model import BuildSpec, DriverName, Row
from dsproducts.bind.named_suite import SEED, NamedSuite, absent_check, as_warning, zone_check
from dsvalidate.check import Check, Gate, ShipAnswer, Status, answer_of
from dsvalidate.step import Background, KeptSteps, Step, run_steps
from dsvalidate.validation import (
    ValidateRequest,
    check_request,
    suite_of,
    workloads_for,
)

BIND, OPENLDAP = MATRIX.row("debian-13-bind"), MATRIX.row("debian-13-openldap")


def steps(row: Row) -> tuple[Step, ...]:
    workloads = workloads_for(MATRIX, row, None)
    question = question_of(sides_of(row=row), tools_of(ENGINE, row, "test"), workloads=workloads)
    return tuple(steps_in(question, Path("/nowhere")).values())


def asked(row: Row, **changes: Any) -> ValidateRequest:
    spec = BuildSpec(driver=DriverName.DEB, onto=row.id)
    known: dict[str, Any] = {
        "matrix": MATRIX, "row": row, "spec": spec, "workloads": workloads_for(MATRIX, row, None),
        "settings": MATRIX.settings[0],
    }  # fmt: skip
    return ValidateRequest(**(known | changes))


def test_bind_has_a_step_in_every_gate() -> None:
    found = [(step.gate, step.name) for step in steps(BIND)]
    assert {gate for gate, _ in found} == {*Gate}
    assert (Gate.WORKS, "zone") in found
    assert (Gate.PERFORMS, "speed-dns-udp") in found
    assert not {name for _, name in found} & {"binds", "replication", "password-strength"}


def test_what_the_suite_of_bind_does_not_look_at_is_said() -> None:
    [step] = [step for step in steps(BIND) if step.name == "traces"]
    [check] = step.run()
    assert (check.name, check.status) == ("secrets", Status.INCONCLUSIVE)


def test_without_a_suite_packages_and_speed_are_looked_at_and_the_rest_is_said_once() -> None:
    """OpenLDAP has none. The answer stays open: lack of data is never a pass."""
    assert suite_of(OPENLDAP) is None
    found = steps(OPENLDAP)
    assert {step.gate for step in found} == {Gate.BUILDS, Gate.PERFORMS}
    passed = [
        Step(gate=gate, name="one", title="t", seconds=1.0, run=lambda gate=gate: [passing(gate)])
        for gate in (Gate.BUILDS, Gate.PERFORMS)
    ]
    told = Told()
    kept = KeptSteps(folder=Path("/nowhere"), sides=None)
    object.__setattr__(kept, "keep", lambda *_: None)
    checks = run_steps(
        lambda: (passed, kept), 2.0, Background(print), told, no_step="no suite for OpenLDAP"
    )
    left = [Gate.INSTALLS, Gate.WORKS, Gate.SAFE]
    assert told.skipped_ == [(left, "no suite for OpenLDAP")]
    assert {check.gate: check.found for check in checks if check.status is Status.NOT_RUN} == (
        dict.fromkeys(left, "no suite for OpenLDAP")
    )
    assert answer_of(checks) is ShipAnswer.INCONCLUSIVE


def passing(gate: Gate) -> Check:
    return Check(gate=gate, name="one", status=Status.PASSED, found="f")


@pytest.mark.parametrize("row", [ROW, BIND, OPENLDAP], ids=lambda row: row.id)
def test_stock_rows_of_every_packaged_product_can_be_asked_for(row: Row) -> None:
    check_request(asked(row))


@pytest.mark.parametrize(
    ("row", "profile", "ids"),
    [
        (ROW, None, ["bind-one", "bind-three", "bind-random"]),
        (OPENLDAP, None, ["bind-one", "bind-three", "bind-random"]),
        (BIND, None, ["dns-udp"]),
        (BIND, "binds", ["bind-one", "bind-three", "bind-random"]),
    ],
)
def test_workloads_are_the_profile_s_or_those_that_fit(row, profile, ids) -> None:
    assert [each.id for each in workloads_for(MATRIX, row, profile)] == ids


def test_a_profile_that_does_not_fit_is_refused_before_anything_is_built() -> None:
    with pytest.raises(UsageError, match="bind-one uses ldap"):
        check_request(asked(BIND, workloads=workloads_for(MATRIX, BIND, "binds")))


def test_a_profile_that_stops_the_server_is_refused() -> None:
    with pytest.raises(UsageError, match="import stops the server"):
        check_request(asked(ROW, workloads=(find_workload(MATRIX, "import"),)))


@pytest.mark.parametrize(
    "row",
    [row for row in MATRIX.rows if row.system in {"freeipa", "aldpro"} or row.build],
    ids=lambda row: row.id,
)
def test_rows_that_are_not_stock_packages_of_the_product_are_refused(row: Row) -> None:
    with pytest.raises(UsageError, match="has no stock packages"):
        check_request(asked(row, workloads=()))


@dataclass
class Named:
    """A driver whose server answers, or does not."""

    error: InstanceError | None = None
    port: int = 53
    seen: list[Any] = field(default_factory=list)

    def check(self, endpoint: Any, seed: Any) -> dict[str, str]:
        self.seen.append(seed)
        if self.error:
            raise self.error
        return {"version": "9.20.11"}


def server_of(system: Named, said: str = "") -> Any:
    box = SimpleNamespace(log="l", execute=lambda *_, **__: SimpleNamespace(stdout=said))
    return SimpleNamespace(system=system, box=box, start=lambda: None)


def test_a_server_that_answers_for_its_zone_passes() -> None:
    system = Named()
    check = zone_check(server_of(system), "service-answers")
    assert (check.status, system.seen) == (Status.PASSED, [SEED])
    assert "9.20.11" in check.found


def test_one_that_does_not_stops_the_upgrade_and_only_warns_after_a_downgrade() -> None:
    system = Named(error=InstanceError("name 0 of the zone is not answered (+tcp)"))
    check = zone_check(server_of(system), "service-answers")
    assert (check.status, check.stops) == (Status.FAILED, True)
    assert "+tcp" in check.found
    after = as_warning(check)
    assert (after.status, after.stops) == (Status.WARNED, False)
    assert after.advice


def test_a_server_that_was_ended_from_outside_says_nothing_of_the_packages() -> None:
    error = InstanceError("it ended")
    error.killed = True
    with pytest.raises(InstanceError):
        zone_check(server_of(Named(error=error)), "service-answers")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (";; ->>HEADER<<- opcode: QUERY, status: NXDOMAIN, id: 1", Status.PASSED),
        (";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1", Status.FAILED),
        ("", Status.FAILED),
    ],
)
def test_a_name_that_is_not_there_must_not_be_answered(said: str, status: Status) -> None:
    check = absent_check(server_of(Named(), said))
    assert check.status is status


def test_users_cannot_have_capabilities_so_a_changed_system_is_root_s(monkeypatch) -> None:
    options: list[Any] = []

    class Box:
        def __enter__(self) -> Any:
            return SimpleNamespace(box=None, shared=None, began_at=0.0)

        def __exit__(self, *_: object) -> None: ...

    def service_box(*_: Any, **more: Any) -> Box:
        options.append(more)
        return Box()

    monkeypatch.setattr("dsproducts.bind.named_suite.service_box", service_box)
    tools = tools_of(ENGINE, BIND, "test")
    for capabilities in ((), ("CHOWN",)):
        with NamedSuite().served(tools, "r", purpose="p", capabilities=capabilities):
            pass
    assert [each["user"] for each in options] == ["bind", None]
    assert options[0]["capabilities"] == ()
    assert {"CHOWN", "SETUID", "SETGID", "KILL"} <= {*options[1]["capabilities"]}
