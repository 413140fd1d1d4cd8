"""Whether users can bind with their own passwords, and with no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsharness.systems.ldap.stored_password import parse_stored
from dsvalidate.check import Check, Gate, Status
from dsvalidate.dirsrv.population import SchemeUser
from dsvalidate.dirsrv.validated_server import ValidatedServer

REFUSED = (
    "The server refuses passwords that are right. Look for a password storage plugin that is "
    "missing or not registered (libpwdstorage-plugin, libpwdchan-plugin), or that no longer reads "
    "what it wrote before; the details name the schemes."
)
ACCEPTED = "The server accepts passwords that are wrong. Do not ship this."


def binding_checks(
    server: ValidatedServer, users: Sequence[SchemeUser], gate: Gate, *, of: str
) -> Iterator[Check]:
    """One for the right passwords, one for wrong ones; if nobody can bind, the first stops all."""
    server.tools.progress(f"binding as {len(users)} users, {of}")
    refused = tuple(user for user in users if not server.binds(user.dn, user.password))
    yield right_check(users, refused, gate, of)
    let_in = tuple(user for user in users if server.binds(user.dn, wrong(user)))
    yield wrong_check(users, let_in, gate, of)


def wrong(user: SchemeUser) -> str:
    """A password that is not the user's; it begins in another way, since DES reads 8 characters."""
    return f"x{user.password}"


def right_check(
    users: Sequence[SchemeUser], refused: Sequence[SchemeUser], gate: Gate, of: str
) -> Check:
    schemes = ", ".join(sorted({user.scheme for user in users}))
    if not refused:
        return Check(
            gate=gate, name=f"{of}-bind", status=Status.PASSED,
            found=f"all {len(users)} users bind, each stored under another scheme: {schemes}",
        )  # fmt: skip
    return Check(
        gate=gate, name=f"{of}-bind", status=Status.FAILED, advice=REFUSED,
        found=f"{len(refused)} of {len(users)} users can no longer bind: "
        + ", ".join(user.scheme for user in refused),
        details=tuple(f"{user.dn}: {parse_stored(user.stored)}" for user in refused),
        stops=len(refused) == len(users),
    )  # fmt: skip


def wrong_check(
    users: Sequence[SchemeUser], let_in: Sequence[SchemeUser], gate: Gate, of: str
) -> Check:
    name = f"{of}-wrong-passwords"
    if not let_in:
        return Check(
            gate=gate, name=name, status=Status.PASSED,
            found=f"{len(users)} binds with a wrong password were refused",
        )  # fmt: skip
    return Check(
        gate=gate, name=name, status=Status.FAILED, advice=ACCEPTED,
        found=f"a wrong password was ACCEPTED for {len(let_in)} of {len(users)} users: "
        + ", ".join(user.scheme for user in let_in),
        details=tuple(user.dn for user in let_in),
    )  # fmt: skip
