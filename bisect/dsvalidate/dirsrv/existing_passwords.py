"""What becomes of passwords that stock stored, once the patched server is there."""

from __future__ import annotations

from collections.abc import Sequence

from dsharness.systems.ldap.stored_password import parse_stored
from dsvalidate.check import Check, Gate, Status
from dsvalidate.dirsrv.guess_cost import guess_cost, ratio, shown
from dsvalidate.dirsrv.password_strength import DEFAULT, SLACK, values_of
from dsvalidate.dirsrv.populated_image import populated
from dsvalidate.dirsrv.product_advice import STORED_AGAIN
from dsvalidate.dirsrv.validated_server import ValidatedServer, validated_server
from dsvalidate.sides import Sides
from dsvalidate.step_tools import StepTools

NAME = "existing-passwords"


def run(sides: Sides, tools: StepTools) -> Sequence[Check]:
    """A value that stock wrote is put into the patched server, and its owner binds."""
    users = populated(tools, sides.stock).population.users
    old = next(user for user in users if user.scheme == DEFAULT)
    with validated_server(tools, populated(tools, sides.patched).reference, purpose=NAME) as server:
        server.start()
        kept = _after_bind(server, old.stored, old.password)
        server.stop()
    return [existing_check(values_of(users)[DEFAULT], kept)]


def existing_check(before: str, after: str) -> Check:
    """Whether the value is still the one that stock wrote after its owner has bound."""
    old, new = parse_stored(before), parse_stored(after)
    if before == after:
        found = (
            f"passwords that stock stored by default ({old}) stay as they are until their owners "
            "change them: the patch makes them neither weaker nor faster"
        )
        return Check(gate=Gate.SAFE, name=NAME, status=Status.PASSED, found=found)
    costs = guess_cost(before), guess_cost(after)
    times = ratio(costs[1], costs[0]) if costs[0] and costs[1] else None
    weaker = times is not None and times < SLACK
    words = f", {shown(times)} of the cost of a guess" if times is not None else ""
    return Check(
        gate=Gate.SAFE, name=NAME, status=Status.WARNED if weaker else Status.PASSED,
        found=f"a password that stock stored as {old} becomes {new} when its owner binds{words}",
        advice=STORED_AGAIN if weaker else "",
    )  # fmt: skip


def _after_bind(server: ValidatedServer, stored: str, password: str) -> str:
    dn = f"uid=from-stock,{server.site.people}"
    classes = ["top", "person", "organizationalPerson", "inetOrgPerson"]
    names = {"uid": ["from-stock"], "cn": ["a"], "sn": ["b"], "userPassword": [stored]}
    with server.manager() as directory:
        directory.add(dn, {"objectClass": classes, **names})
        server.binds(dn, password)
        return directory.read(dn, "userPassword").get("userPassword", [""])[0]
