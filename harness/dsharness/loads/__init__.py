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
    lambda folder: folder.drivers(folder.loads), ldapload=Ldapload(), ldclt=Ldclt()
)

LIVE: OfProducts[LiveLoad] = OfProducts(
    lambda folder: {
        tool: make
        for tool, make in folder.drivers(folder.loads).items()
        if isinstance(make(), LiveLoad)
    },
    ldapload=Ldapload(),
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
