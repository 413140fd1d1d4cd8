"""The versions that decide how fast a product is: its own, and those of its libraries."""

from __future__ import annotations

from dsharness.model import Image
from dsharness.products.catalog import product
from dsharness.products.product import first_of


def notable_versions(image: Image) -> dict[str, str]:
    """Product or library -> its version in this image; nothing where no product is served."""
    if image.product is None:
        return {}
    known = product(image.product)
    names = {image.product: known.servers, **known.libraries}
    found = {noun: first_of(packages, image.packages) for noun, packages in names.items()}
    return {noun: version for noun, version in found.items() if version is not None}
