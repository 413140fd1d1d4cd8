"""tinc: a mesh of its daemons, under the loads of all meshes."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder

PRODUCT = ProductFolder(id="tinc", package=__name__, systems={"tinc": "tinc_mesh.Tinc"})
