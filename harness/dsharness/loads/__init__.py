"""One driver for each load tool, in a literal dict."""

from __future__ import annotations

from dsharness.loads.dnsload import Dnsload
from dsharness.loads.dnsperf import Dnsperf
from dsharness.loads.krbload import Krbload
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

LOADS: dict[str, Load] = {
    "dnsload": Dnsload(),
    "dnsperf": Dnsperf(),
    "krbload": Krbload(),
    "ldapload": Ldapload(),
    "ldclt": Ldclt(),
}

LIVE: dict[str, LiveLoad] = {
    "dnsload": Dnsload(),
    "krbload": Krbload(),
    "ldapload": Ldapload(),
}

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
