"""tinc: daemons that switch Ethernet's frames, encrypted as the version does by default."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from dsproducts.mesh.mesh_peers import Mesh


class Tinc(Mesh):
    """The driver of tinc 1.0."""

    grave: ClassVar[re.Pattern[str]] = re.compile(r"[Cc]ould not|[Cc]annot|Error |Fatal")
    peer: ClassVar[Path] = Path(__file__).with_name("tinc-peer")
