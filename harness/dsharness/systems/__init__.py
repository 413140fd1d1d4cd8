"""One driver for each kind of server, by the name that a row gives; each product has its own."""

from __future__ import annotations

from dsharness.model import SystemName, Workload
from dsharness.product_folder import OfProducts
from dsharness.systems.system import Endpoint, Look, Seed, System

SYSTEMS: OfProducts[System] = OfProducts(lambda folder: folder.drivers(folder.systems))


def answers(system: SystemName, workload: Workload) -> bool:
    """Return whether such a server speaks the workload's protocol."""
    return workload.protocol in SYSTEMS[system].protocols


__all__ = ["SYSTEMS", "Endpoint", "Look", "Seed", "System", "answers"]
