"""VpnCloud: nodes with one password, which take the cipher that is fastest on the machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from dsproducts.mesh.mesh_peers import Mesh


class Vpncloud(Mesh):
    """The driver of VpnCloud 2."""

    grave: ClassVar[re.Pattern[str]] = re.compile(r"panicked at|Failed to")
    peer: ClassVar[Path] = Path(__file__).with_name("vpncloud-peer")
