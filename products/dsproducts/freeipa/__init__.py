"""FreeIPA: built from source, installed without systemd, and measured by its directory."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder

PRODUCT = ProductFolder(
    id="freeipa",
    package=__name__,
    systems={"freeipa-tree": "bare_ipa.BareIpa"},
)
