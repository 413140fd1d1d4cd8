"""One driver per kind of server, in a literal dict: no registry, no scanning."""

from __future__ import annotations

from dsharness.model import Server
from dsharness.servers.aldpro import AldPro
from dsharness.servers.contract import Seed, ServerDriver
from dsharness.servers.dirsrv import Dirsrv
from dsharness.servers.freeipa import FreeIpa
from dsharness.servers.tree import TreeServer

DRIVERS: dict[Server, ServerDriver] = {
    Server.DIRSRV: Dirsrv(),
    Server.TREE: TreeServer(),
    Server.FREEIPA: FreeIpa(),
    Server.ALDPRO: AldPro(),
}

__all__ = ["DRIVERS", "Seed", "ServerDriver"]
