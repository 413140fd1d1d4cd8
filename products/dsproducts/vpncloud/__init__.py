"""VpnCloud: a mesh of its nodes, under the loads of all meshes; built from its source by cargo."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder

PRODUCT = ProductFolder(
    id="vpncloud", package=__name__, systems={"vpncloud": "vpncloud_mesh.Vpncloud"}
)
