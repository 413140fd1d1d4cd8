"""One driver for each kind of server, by the name that a row gives; each product has its own."""

from __future__ import annotations

from dsharness.product_folder import OfProducts
from dsharness.systems.system import Endpoint, Look, Seed, System

SYSTEMS: OfProducts[System] = OfProducts(lambda folder: folder.drivers(folder.systems))

__all__ = ["SYSTEMS", "Endpoint", "Look", "Seed", "System"]
