"""One driver for each kind of server, by the name that a row gives; each product has its own."""

from __future__ import annotations

from dsharness.product_folder import OfProducts
from dsharness.systems.ldap.dirsrv import Dirsrv
from dsharness.systems.ldap.freeipa import AldPro, FreeIpa
from dsharness.systems.ldap.install_tree import DirsrvTree
from dsharness.systems.ldap.openldap import OpenLdap
from dsharness.systems.system import Endpoint, Look, Seed, System

SYSTEMS: OfProducts[System] = OfProducts(
    {
        "dirsrv": Dirsrv(),
        "dirsrv-tree": DirsrvTree(),
        "freeipa": FreeIpa(),
        "aldpro": AldPro(),
        "openldap": OpenLdap(),
    },
    lambda folder: folder.systems,
)

__all__ = ["SYSTEMS", "Endpoint", "Look", "Seed", "System"]
