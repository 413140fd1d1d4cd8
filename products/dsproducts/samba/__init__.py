"""Samba: a domain controller, driven by the loads for directories, KDCs and name servers."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder

PRODUCT = ProductFolder(
    id="samba",
    package=__name__,
    systems={"samba": "domain_controller.Samba"},
    parts={"experiments": "domains_measured"},
)
