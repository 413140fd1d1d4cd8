"""Stock, filled with users, becomes patched: it starts, nothing is lost, everyone can bind.

Back to stock, it is seen what no longer works for those who tried the patched packages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsbuilds.drivers.package_build import repository_of
from dsharness.errors import InstanceError
from dsharness.model import Promise
from dsharness.model.stored_password import parse_stored
from dsproducts.dirsrv.validation.password_strength import alike
from dsproducts.dirsrv.validation.populated_image import Populated, populated, recalled, store
from dsproducts.dirsrv.validation.population import (
    Population,
    SchemeUser,
    add_default_user,
    add_scheme_users,
    client_users,
    differences,
    dump_of,
    passwords_in,
)
from dsproducts.dirsrv.validation.server_traces import observe
from dsproducts.dirsrv.validation.validated_server import (
    ValidatedServer,
    binding_checks,
    checks_of,
    validated_server,
)
from dsvalidate.check import Check, Figure, Gate, Status, last_lines
from dsvalidate.installs_gate import (
    DOWNGRADE_ADVICE,
    changeable,
    downgrade_check,
    keep_upgraded,
    left_by_upgrade,
    nothing_left_check,
    upgrade_check,
    upgraded_reference,
)
from dsvalidate.step import judged
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, stock_packages

REVISION = 3
SHOWN = 40  # lines of what changed
NEW = "new-"
START = (
    "The package builds but its server does not start. Read its last lines below and in the log; "
    "start it by hand with `ns-slapd -D /etc/dirsrv/slapd-NAME -d 266354688` for all messages."
)
BIND_ADVICE = (
    "The server starts but refuses binds. Look for a password storage plugin that is missing or "
    "not registered (libpwdstorage-plugin, libpwdchan-plugin), and at the server's error log."
)


def upgrade_checks(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """All checks; the first one that no later step can do without stops the validation."""
    before = populated(tools, sides.stock)
    return judged(Gate.INSTALLS, "upgrade", lambda: _upgraded(sides, tools, evidence, before))()


def _upgraded(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, before: Populated
) -> Sequence[Check]:
    with changeable(
        validated_server, tools, before.reference, repository_of(sides.build), purpose="upgrade"
    ) as server:
        upgrade = _Upgrade(sides=sides, evidence=evidence, before=before, server=server)
        checks = list(upgrade.checks())
        if not any(check.stops for check in checks):
            users = before.population.users
            observe(server, evidence, "upgrade-patched", users, since_s=upgrade.started_at)
            server.forget_scheme()
            keep_upgraded(server, sides, upgraded_reference(sides, REVISION, before.key))
    return checks


def upgraded_image(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> str | None:
    """Return the image that this step leaves: stock's instance, upgraded, with new users in it."""
    reference = upgraded_reference(sides, REVISION, populated(tools, sides.stock).key)
    return left_by_upgrade(tools, reference, lambda: upgrade_checks(sides, tools, evidence))


@dataclass(kw_only=True)
class _Upgrade:
    sides: Sides
    evidence: EvidenceFolder
    before: Populated
    server: ValidatedServer
    started_at: float = 0.0  # of the epoch: what was written before came with the packages

    def checks(self) -> Iterator[Check]:
        upgraded = upgrade_check(self.server, self.sides, self.evidence)
        yield upgraded
        if upgraded.stops:
            return
        started = self._started()
        yield started
        if started.stops:
            return
        yield self._data()
        population = self.before.population
        binds = tuple(binding_checks(self.server, population.users, Gate.INSTALLS, of="old-users"))
        yield from binds
        if any(check.stops for check in binds):
            return
        yield self._stored_again()
        yield from self._new_passwords()
        advice = "The upgrade broke encryption: clients with TLS would lose the server."
        answers = self.server.asked("tls", {"users": client_users(population.users[:1])})
        yield from checks_of(answers, Gate.INSTALLS, {}, advice)

    def _started(self) -> Check:
        self.server.tools.progress("starting the upgraded server")
        self.started_at = time.time()
        try:
            self.server.start()
        except InstanceError as error:
            why = error.message.removeprefix("the server did not become ready: ")
            return self._no_service(error, f"does not start: {why}", START)
        try:
            with self.server.manager() as directory:
                version = self.server.system.version(directory)
        except InstanceError as error:
            why = f"starts but refuses the bind of its manager: {error.message}"
            return self._no_service(error, why, BIND_ADVICE)
        return _check("service-starts", f"the upgraded server starts and says it is {version}")

    def _no_service(self, error: InstanceError, why: str, advice: str) -> Check:
        lines = self.server.error_lines()
        log = self.evidence.keep("upgrade-server.txt", f"{error}\n\n{lines}\n")
        return _check(
            "service-starts",
            f"the upgraded server {why}",
            status=Status.FAILED,
            stops=True,
            advice=advice,
            evidence=(log,),
            details=last_lines(lines),
        )

    def _data(self) -> Check:
        before = self.before.population.dump
        with self.server.manager() as directory:
            after = dump_of(directory)
        changes = tuple(differences(before, after))
        values = sum(len(values) for entry in after.values() for values in entry.values())
        figures: dict[str, Figure] = {"entries": len(after), "values": values}
        if not changes:
            sentence = (
                f"{len(after)} entries with {values} values are the same as before the upgrade"
            )
            return _check("data-intact", sentence, figures=figures)
        log = self.evidence.keep("upgrade-differences.txt", "\n".join(changes) + "\n")
        return _check(
            "data-intact",
            f"{len(changes)} differences in {len(before)} entries after the upgrade: {changes[0]}",
            status=Status.FAILED,
            figures=figures,
            details=changes[:SHOWN],
            evidence=(log,),
            advice="An upgrade must not change what users stored: look at what the server's "
            "start-up or the packages' scripts convert.",
        )

    def _stored_again(self) -> Check:
        """After everyone has bound once: by default the server then stores by its own scheme."""
        before = passwords_in(self.before.population.dump)
        with self.server.manager() as directory:
            after = passwords_in(dump_of(directory))
        lines = tuple(stored_again(before, after))
        sentence = (
            f"the upgrade itself changed no stored password; at their next bind {len(lines)} of "
            f"{len(before)} users were stored again, under the scheme of new passwords"
        )
        return _check(
            "passwords-stored-again",
            sentence,
            details=lines,
            figures={"users": len(before), "stored_again": len(lines)},
        )

    def _new_passwords(self) -> Iterator[Check]:
        old = next(user for user in self.before.population.users if user.scheme == "default")
        with self.server.manager() as directory:
            new = add_default_user(directory, f"{NEW}default")
            users = (*add_scheme_users(directory, NEW), new)
        yield new_password_check(self.sides.build.promise, old.stored, new.stored)
        yield from binding_checks(self.server, users, Gate.INSTALLS, of="new-users")
        with self.server.manager() as directory:
            dump = dump_of(directory)
        all_users = (*self.before.population.users, *users)
        store(self.server.box, Population(users=all_users, dump=dump))


def stored_again(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """One line for each user whose stored password is another one now."""
    for dn, value in before.items():
        if after.get(dn, value) != value:
            yield f"{dn}: {parse_stored(value)} became {parse_stored(after[dn])}"


def new_password_check(promise: Promise, stock_value: str, patched_value: str) -> Check:
    """Whether new passwords are stored as the patch promises, or else as in stock."""
    stock, patched = parse_stored(stock_value), parse_stored(patched_value)
    figures: dict[str, Figure] = {"stock": str(stock), "patched": str(patched)}
    broken = promise.broken_by(patched.facts)
    if broken is not None:
        return _check(
            "new-passwords",
            f"the patch promises something else: {broken}",
            status=Status.FAILED,
            figures=figures,
            advice="The patch has no effect on an upgraded instance: an entry of its dse.ldif may "
            "set the scheme or the rounds, or the build did not take the change.",
        )
    if promise.asked_of(patched.facts):
        return _check(
            "new-passwords", f"new passwords are stored as promised: {patched}", figures=figures
        )
    if alike(stock, patched):
        return _check(
            "new-passwords", f"new passwords are stored as in stock: {patched}", figures=figures
        )
    return _check(
        "new-passwords",
        f"new passwords are stored as {patched}; stock stores {stock}",
        status=Status.WARNED,
        figures=figures,
        advice="If this is what the patch is for, say so in the changelog; gate `safe` says what "
        "it means for a guess.",
    )


def _check(
    name: str,
    sentence: str,
    *,
    status: Status = Status.PASSED,
    advice: str = "",
    figures: dict[str, Figure] | None = None,
    details: Sequence[str] = (),
    evidence: Sequence[str] = (),
    stops: bool = False,
) -> Check:
    return Gate.INSTALLS.check(
        name,
        status,
        sentence,
        advice=advice,
        figures=figures or {},
        details=tuple(details),
        evidence=tuple(evidence),
        stops=stops,
    )


def downgrade_checks(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """Nothing here fails a validation: stock cannot know what is newer than it is."""
    reference = upgraded_image(sides, tools, evidence)
    if reference is None:
        return [nothing_left_check()]
    population = recalled(tools, reference)
    packages = stock_packages(sides, tools)
    with changeable(validated_server, tools, reference, packages, purpose="downgrade") as server:
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
            sentence = f"the stock server does not work with what the patched one left: {error}"
            lines = last_lines(self.server.error_lines())
            yield _warned("downgrade-starts", sentence, details=lines)
            return
        yield self._binds()
        self.server.stop()

    def _data(self) -> Check:
        with self.server.manager() as directory:
            changes = tuple(differences(self.population.dump, dump_of(directory)))
        count = len(self.population.dump)
        if changes:
            sentence = f"{len(changes)} differences in {count} entries: {changes[0]}"
            return _warned("downgrade-data", sentence, details=changes[:SHOWN])
        sentence = f"the stock server starts again, its {count} entries unchanged"
        return _check("downgrade-data", sentence)

    def _binds(self) -> Check:
        users = self.population.users
        refused = [user for user in users if not self.server.binds(user.dn, user.password)]
        return binds_check(users, refused)


def binds_check(users: Sequence[SchemeUser], refused: Sequence[SchemeUser]) -> Check:
    """Check users from before the upgrade, and those that the patched server stored."""
    if not refused:
        sentence = (
            f"all {len(users)} users bind on stock, also those that the patched server stored"
        )
        return _check("downgrade-bind", sentence)
    return _warned(
        "downgrade-bind",
        f"{len(refused)} of {len(users)} users cannot bind on stock after a downgrade: "
        + ", ".join(sorted({user.scheme for user in refused})),
        details=tuple(f"{user.dn}: {parse_stored(user.stored)}" for user in refused),
        advice="Stock does not read what the patched server stores for them: they need new "
        "passwords after a downgrade. " + DOWNGRADE_ADVICE,
    )


def _warned(
    name: str, sentence: str, *, details: Sequence[str], advice: str = DOWNGRADE_ADVICE
) -> Check:
    return _check(name, sentence, status=Status.WARNED, advice=advice, details=details)
