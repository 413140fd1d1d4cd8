"""One driver for each kind of server, in a literal dict: no registry, no scanning."""

from __future__ import annotations

from dsharness.model import SystemName
from dsharness.systems.bind import Bind, BindTree
from dsharness.systems.krb5 import Krb5
from dsharness.systems.ldap.dirsrv import Dirsrv
from dsharness.systems.ldap.freeipa import AldPro, FreeIpa
from dsharness.systems.ldap.install_tree import DirsrvTree
from dsharness.systems.ldap.openldap import OpenLdap
from dsharness.systems.system import Endpoint, Look, Seed, System

SYSTEMS: dict[SystemName, System] = {
    SystemName.DIRSRV: Dirsrv(),
    SystemName.DIRSRV_TREE: DirsrvTree(),
    SystemName.FREEIPA: FreeIpa(),
    SystemName.ALDPRO: AldPro(),
    SystemName.OPENLDAP: OpenLdap(),
    SystemName.BIND: Bind(),
    SystemName.BIND_TREE: BindTree(),
    SystemName.KRB5: Krb5(),
}

__all__ = ["SYSTEMS", "Endpoint", "Look", "Seed", "System"]
