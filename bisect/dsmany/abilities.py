"""What this machine can do, as far as machines of one class differ in it."""

from __future__ import annotations

import shutil

from dsharness.containers.engine import Engine
from dsharness.machine.hardware_counter import host_counts
from dsharness.matrix.cross_checks import BOOTSTRAP_OF
from dsharness.model import Abilities, Family


def abilities_of(engine: Engine) -> Abilities:
    """What a worker says of its machine; it runs perf once.

    mmdebstrap makes bases of debs, and the container in which dnf makes those of RPMs.
    """
    bootstraps = shutil.which("mmdebstrap") is not None
    return Abilities(
        families=tuple(each for each in Family if bootstraps or each not in BOOTSTRAP_OF),
        counters=host_counts(),
        pins_cpus=engine.pins_cpus,
    )
