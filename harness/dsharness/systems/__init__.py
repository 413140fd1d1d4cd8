"""One driver per kind of server, in a literal dict: no registry, no scanning."""

from __future__ import annotations

from dsharness.model import Server
from dsharness.systems.contract import Seed, ServerDriver
from dsharness.systems.ldap.aldpro import AldPro
from dsharness.systems.ldap.dirsrv import Dirsrv
from dsharness.systems.ldap.freeipa import FreeIpa
from dsharness.systems.ldap.install_tree import TreeServer

DRIVERS: dict[Server, ServerDriver] = {
    Server.DIRSRV: Dirsrv(),
    Server.TREE: TreeServer(),
    Server.FREEIPA: FreeIpa(),
    Server.ALDPRO: AldPro(),
}

__all__ = ["DRIVERS", "Seed", "ServerDriver"]
