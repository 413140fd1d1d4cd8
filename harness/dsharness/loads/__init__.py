"""One driver for each load tool, by its name; each product has its own."""

from __future__ import annotations

from dsharness.loads.ldapload import Ldapload
from dsharness.loads.ldclt import Ldclt
from dsharness.loads.load_driver import (
    Extent,
    LiveLoad,
    Load,
    LoadReport,
    Operations,
    Schedule,
    Seconds,
)
from dsharness.product_folder import OfProducts

LOADS: OfProducts[Load] = OfProducts(
    {"ldapload": Ldapload(), "ldclt": Ldclt()},
    lambda folder: folder.loads,
)

LIVE: OfProducts[LiveLoad] = OfProducts(
    {"ldapload": Ldapload()},
    lambda folder: {
        tool: load for tool, load in folder.loads.items() if isinstance(load, LiveLoad)
    },
)

__all__ = [
    "LIVE",
    "LOADS",
    "Extent",
    "LiveLoad",
    "Load",
    "LoadReport",
    "Operations",
    "Schedule",
    "Seconds",
]
