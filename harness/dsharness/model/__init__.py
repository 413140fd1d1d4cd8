"""The vocabulary: what matrix.yaml may say, and what a measurement leaves behind.

Read with docs/architecture.md. Frozen values that check themselves; files, containers and clocks
live elsewhere.
"""

from __future__ import annotations

from dsharness.model.matrix import (
    Arm,
    Defaults,
    Matrix,
    Order,
    Source,
    Tools,
    Workload,
)
from dsharness.model.measured import (
    NOTABLE_PACKAGES,
    Boundary,
    Campaign,
    Image,
    Outcome,
    Sample,
    Step,
    StoredPassword,
    Verdict,
)
from dsharness.model.rows import (
    AptPackages,
    Base,
    Bootstrap,
    DnfPackages,
    Family,
    KojiPackages,
    Os,
    Packages,
    PreinstalledPackages,
    Published,
    Registry,
    Row,
    Series,
    Server,
    Versions,
)
from dsharness.model.value import (
    Identifier,
    Value,
    Version,
)

__all__ = [
    "NOTABLE_PACKAGES",
    "AptPackages",
    "Arm",
    "Base",
    "Bootstrap",
    "Boundary",
    "Campaign",
    "Defaults",
    "DnfPackages",
    "Family",
    "Identifier",
    "Image",
    "KojiPackages",
    "Matrix",
    "Order",
    "Os",
    "Outcome",
    "Packages",
    "PreinstalledPackages",
    "Published",
    "Registry",
    "Row",
    "Sample",
    "Series",
    "Server",
    "Source",
    "Step",
    "StoredPassword",
    "Tools",
    "Value",
    "Verdict",
    "Version",
    "Versions",
    "Workload",
]
