"""fastd: peers that know each other's keys, and encrypt by Salsa20/12 and UMAC."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from dsproducts.mesh.mesh_peers import Mesh


class Fastd(Mesh):
    """The driver of fastd, from 21 on."""

    grave: ClassVar[re.Pattern[str]] = re.compile(r"(?:Error|Fatal): ")
    peer: ClassVar[Path] = Path(__file__).with_name("fastd-peer")
