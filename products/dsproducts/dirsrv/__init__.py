"""389-ds: its ns-slapd from packages, from a source tree, and inside FreeIPA and ALD Pro."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder
from dsproducts.dirsrv.dirsrv import Dirsrv
from dsproducts.dirsrv.freeipa import AldPro, FreeIpa
from dsproducts.dirsrv.install_tree import DirsrvTree

PRODUCT = ProductFolder(
    id="389-ds",
    package=__name__,
    systems={
        "dirsrv": Dirsrv(),
        "dirsrv-tree": DirsrvTree(),
        "freeipa": FreeIpa(),
        "aldpro": AldPro(),
    },
    parts={"suite": "validation.dirsrv_suite", "edits": "edits"},
)
