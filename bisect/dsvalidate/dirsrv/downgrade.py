"""Back to stock: what no longer works for those who tried the patched packages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsharness.errors import InstanceError
from dsharness.systems.ldap.stored_password import parse_stored
from dsvalidate.check import Check, Gate, Status, last_lines
from dsvalidate.dirsrv.populated_image import recalled
from dsvalidate.dirsrv.population import Population, SchemeUser, differences, dump_of
from dsvalidate.dirsrv.upgrade import upgraded_image
from dsvalidate.dirsrv.validated_server import ValidatedServer, validated_server
from dsvalidate.installs_gate.package_change import (
    DOWNGRADE_ADVICE,
    changeable,
    downgrade_check,
    nothing_left_check,
)
from dsvalidate.sides import Sides
from dsvalidate.step_tools import EvidenceFolder, StepTools
from dsvalidate.stock_packages import stock_packages

NAME = "downgrade"


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """Nothing here fails a validation: stock cannot know what is newer than it is."""
    reference = upgraded_image(sides, tools, evidence)
    if reference is None:
        return [nothing_left_check()]
    population = recalled(tools, reference)
    packages = stock_packages(sides, tools)
    with changeable(validated_server, tools, reference, packages, purpose=NAME) as server:
        return list(
            _Downgrade(
                sides=sides, evidence=evidence, population=population, server=server
            ).checks()
        )


@dataclass(frozen=True, kw_only=True)
class _Downgrade:
    sides: Sides
    evidence: EvidenceFolder
    population: Population
    server: ValidatedServer

    def checks(self) -> Iterator[Check]:
        changed = downgrade_check(self.server, self.sides, self.evidence)
        yield changed
        if changed.status is not Status.PASSED:
            return
        try:
            self.server.start()
            yield self._data()
        except InstanceError as error:
            found = f"the stock server does not work with what the patched one left: {error}"
            lines = last_lines(self.server.error_lines())
            yield _check("downgrade-starts", Status.WARNED, found, details=lines)
            return
        yield self._binds()
        self.server.stop()

    def _data(self) -> Check:
        with self.server.manager() as directory:
            changes = tuple(differences(self.population.dump, dump_of(directory)))
        count = len(self.population.dump)
        if changes:
            found = f"{len(changes)} differences in {count} entries: {changes[0]}"
            return _check("downgrade-data", Status.WARNED, found, details=changes[:40])
        found = f"the stock server starts again, its {count} entries unchanged"
        return _check("downgrade-data", Status.PASSED, found)

    def _binds(self) -> Check:
        users = self.population.users
        refused = [user for user in users if not self.server.binds(user.dn, user.password)]
        return binds_check(users, refused)


def binds_check(users: Sequence[SchemeUser], refused: Sequence[SchemeUser]) -> Check:
    """Check users from before the upgrade, and those that the patched server stored."""
    if not refused:
        found = f"all {len(users)} users bind on stock, also those that the patched server stored"
        return _check("downgrade-bind", Status.PASSED, found)
    return _check(
        "downgrade-bind", Status.WARNED,
        f"{len(refused)} of {len(users)} users cannot bind on stock after a downgrade: "
        + ", ".join(sorted({user.scheme for user in refused})),
        details=tuple(f"{user.dn}: {parse_stored(user.stored)}" for user in refused),
        advice="Stock does not read what the patched server stores for them: they need new "
        "passwords after a downgrade. " + DOWNGRADE_ADVICE,
    )  # fmt: skip


def _check(
    name: str,
    status: Status,
    found: str,
    *,
    advice: str = "",
    details: Sequence[str] = (),
) -> Check:
    return Check(
        gate=Gate.INSTALLS, name=name, status=status, found=found, details=tuple(details),
        advice=advice or (DOWNGRADE_ADVICE if status is Status.WARNED else ""),
    )  # fmt: skip
