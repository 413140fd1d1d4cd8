"""389-ds: its ns-slapd from packages, from a source tree, and inside FreeIPA and ALD Pro."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder

PRODUCT = ProductFolder(
    id="389-ds",
    package=__name__,
    systems={
        "dirsrv": "dirsrv.Dirsrv",
        "dirsrv-tree": "install_tree.DirsrvTree",
        "freeipa": "freeipa.FreeIpa",
        "aldpro": "freeipa.AldPro",
    },
    main_system="dirsrv",
    parts={
        "suite": "validation.dirsrv_suite",
        "edits": "edits",
        "recorded_load": "recorded.recorded_load",
    },
)
