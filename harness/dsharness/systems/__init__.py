"""One driver for each kind of server, in a literal dict: no registry, no scanning."""

from __future__ import annotations

from dsharness.model import SystemName
from dsharness.systems.bind import Bind
from dsharness.systems.contract import Endpoint, Look, Seed, System
from dsharness.systems.ldap.dirsrv import Dirsrv
from dsharness.systems.ldap.freeipa import AldPro, FreeIpa
from dsharness.systems.ldap.install_tree import TreeServer
from dsharness.systems.ldap.openldap import OpenLdap

SYSTEMS: dict[SystemName, System] = {
    SystemName.DIRSRV: Dirsrv(),
    SystemName.TREE: TreeServer(),
    SystemName.FREEIPA: FreeIpa(),
    SystemName.ALDPRO: AldPro(),
    SystemName.OPENLDAP: OpenLdap(),
    SystemName.BIND: Bind(),
}

__all__ = ["SYSTEMS", "Endpoint", "Look", "Seed", "System"]
