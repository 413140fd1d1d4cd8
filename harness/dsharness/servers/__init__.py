"""One driver per kind of server, in a literal dict: no registry, no scanning."""

from __future__ import annotations

from dsharness.model import Server
from dsharness.servers.contract import Seed, ServerDriver
from dsharness.servers.dirsrv import Dirsrv

DRIVERS: dict[Server, ServerDriver] = {
    Server.DIRSRV: Dirsrv(),
}

__all__ = ["DRIVERS", "Seed", "ServerDriver"]
