"""OpenLDAP: its slapd, driven by the loads for directories."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder

PRODUCT = ProductFolder(id="openldap", package=__name__, systems={"openldap": "slapd.OpenLdap"})
