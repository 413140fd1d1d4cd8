"""Two suppliers, one patched and one stock: users and their hashes cross over both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import ldap3

from dsharness.errors import DeadlineError, InstanceError
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems.ldap.directory import Directory
from dsproducts.dirsrv import ns_slapd
from dsproducts.dirsrv.validation.ldap_client import REPLICATION
from dsproducts.dirsrv.validation.populated_image import populated
from dsproducts.dirsrv.validation.population import (
    SchemeUser,
    add_scheme_users,
    differences,
    dump_of,
)
from dsproducts.dirsrv.validation.server_traces import observe
from dsproducts.dirsrv.validation.validated_server import (
    PartnerServer,
    ValidatedServer,
    right_check,
    validated_server,
    wrong,
    wrong_check,
)
from dsvalidate.check import Check, Gate, Status
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools

NAME = "replication"
MANAGER = "cn=replication manager,cn=config"
CROSSING_LIMIT_S = 60.0
DONE = "Error (0)"  # how the server begins a good status
ADVICE = (
    "Sites upgrade one server after the other, so both versions replicate for a while. Warn them, "
    "or find what one side does not understand: the log has both servers' errors."
)


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> Sequence[Check]:
    """Let the patched side initialise the stock one; then both write."""
    patched_image, stock_image = populated(tools, sides.patched), populated(tools, sides.stock)
    with (
        validated_server(tools, patched_image.reference, purpose="patched-supplier") as patched,
        validated_server(
            tools,
            stock_image.reference,
            purpose="stock-supplier",
            system=PartnerServer(),
            network=f"container:{patched.box.name}",
        ) as stock,
    ):
        stock.move_ports()
        pair = _Pair(patched=patched, stock=stock)
        try:
            return list(_observed(pair, evidence, patched_image.population.users))
        except (DeadlineError, InstanceError) as error:
            words = "\n".join(f"{side.error_lines()}\n" for side in (patched, stock))
            log = evidence.keep("replication-errors.txt", words)
            return [
                Gate.WORKS.check(
                    NAME,
                    Status.FAILED,
                    f"replication does not work: {error.message}",
                    advice=ADVICE,
                    evidence=[log],
                )
            ]


def _observed(
    pair: _Pair, evidence: EvidenceFolder, users: Sequence[SchemeUser]
) -> Iterator[Check]:
    yield from pair.checks(users)
    observe(pair.patched, evidence, "replication-patched", users)
    observe(pair.stock, evidence, "replication-stock", users)


@dataclass(frozen=True, kw_only=True)
class _Pair:
    patched: ValidatedServer
    stock: ValidatedServer

    def checks(self, users: Sequence[SchemeUser]) -> Iterator[Check]:
        progress = self.patched.tools.progress
        for number, server in enumerate((self.patched, self.stock), 1):
            server.start()
            with server.manager() as directory:
                enable(directory, number)
        progress("initialising the stock side from the patched one")
        self._initialised()
        yield Gate.WORKS.check(NAME, Status.PASSED, "the patched server initialised the stock one")
        yield from _binds(self.stock, users, "patched-hashes-on-stock")
        progress("adding users on both sides")
        for source, target, of in (
            (self.patched, self.stock, "added-on-patched"),
            (self.stock, self.patched, "added-on-stock"),
        ):
            yield from self._crossed(source, target, of)
        yield self._same()

    def _initialised(self) -> None:
        with self.patched.manager() as directory, self.stock.manager() as partner:
            agree(directory, self.stock.system.port, begin=True)
            wait_until(
                lambda: initialised(directory),
                Deadline.after(CROSSING_LIMIT_S),
                what="the total update of the stock side",
            )
            agree(partner, self.patched.system.port)

    def _crossed(
        self, source: ValidatedServer, target: ValidatedServer, of: str
    ) -> Iterator[Check]:
        """Users whose passwords one side hashed bind on the other."""
        with source.manager() as directory, target.manager() as partner:
            users = add_scheme_users(directory, f"{of}-")
            wait_until(
                lambda: _all_there(partner, users),
                Deadline.after(CROSSING_LIMIT_S),
                what=f"{len(users)} users that were {of.replace('-', ' ')}",
            )
        yield from _binds(target, users, f"{of}-on-other-side")

    def _same(self) -> Check:
        """After all binds, which by default store some passwords again, both sides agree."""

        def agreed() -> bool | None:
            return True if not self._differences() else None

        with suppress(DeadlineError):  # what differs is told below
            wait_until(agreed, Deadline.after(CROSSING_LIMIT_S), what="both sides to be the same")
        return same_check(self._differences())

    def _differences(self) -> tuple[str, ...]:
        with self.patched.manager() as directory, self.stock.manager() as partner:
            return tuple(differences(dump_of(directory), dump_of(partner)))


def same_check(changes: Sequence[str]) -> Check:
    """Say whether both sides hold the same in the end."""
    if not changes:
        return Gate.WORKS.check(
            "replication-agrees", Status.PASSED, "in the end both sides hold the same entries"
        )
    return Gate.WORKS.check(
        "replication-agrees",
        Status.FAILED,
        f"{len(changes)} differences between both sides stay: {changes[0]}",
        advice=ADVICE,
        details=tuple(changes[:40]),
    )


def enable(directory: Directory, number: int) -> None:
    """Make the server a supplier of its suffix, with an account for the other one."""
    account = {
        "objectClass": ["top", "inetUser", "netscapeServer"],
        "cn": ["replication manager"],
        "uid": ["replication manager"],
        "userPassword": [REPLICATION],
    }
    directory.add(MANAGER, account)
    ns_slapd.supply(directory, number, MANAGER)


def agree(directory: Directory, port: int, *, begin: bool = False) -> None:
    """Let the server send its changes to the one on that port."""
    agreement = {
        "objectClass": ["top", "nsds5ReplicationAgreement"],
        "cn": ["other"],
        "nsDS5ReplicaHost": ["127.0.0.1"],
        "nsDS5ReplicaPort": [str(port)],
        "nsDS5ReplicaRoot": [directory.site.suffix],
        "nsDS5ReplicaBindDN": [MANAGER],
        "nsDS5ReplicaCredentials": [REPLICATION],
        "nsDS5ReplicaBindMethod": ["SIMPLE"],
        "nsDS5ReplicaTransportInfo": ["LDAP"],
    }
    dn = _agreement(directory)
    directory.add(dn, agreement)
    if begin:
        directory.modify(dn, {"nsds5BeginReplicaRefresh": "start"})


def initialised(directory: Directory) -> bool | None:
    """True once the total update has ended well; InstanceError when it has failed."""
    values = directory.read(
        _agreement(directory), "nsds5replicaLastInitStatus", "nsds5BeginReplicaRefresh"
    )
    status = "".join(values.get("nsds5replicaLastInitStatus", ()))
    if values.get("nsds5BeginReplicaRefresh") or not status:
        return None
    if not status.startswith(DONE):
        raise InstanceError(f"the total update failed: {status}")
    return True if "succeeded" in status.lower() else None


def _all_there(directory: Directory, users: Sequence[SchemeUser]) -> bool | None:
    search = directory.connection.search
    bind_results = (search(user.dn, "(userPassword=*)", ldap3.BASE) for user in users)
    return True if all(bind_results) else None


def _binds(server: ValidatedServer, users: Sequence[SchemeUser], of: str) -> Iterator[Check]:
    refused = [user for user in users if not server.binds(user.dn, user.password)]
    yield right_check(users, refused, Gate.WORKS, of).model_copy(update={"stops": False})
    let_in = [user for user in users if server.binds(user.dn, wrong(user))]
    if let_in:
        yield wrong_check(users, let_in, Gate.WORKS, of)


def _agreement(directory: Directory) -> str:
    return f"cn=other,{ns_slapd.replica_of(directory)}"
