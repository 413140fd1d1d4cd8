"""Whether a row's archive has anything newer than an image, asked without installing it."""

from __future__ import annotations

from dsharness.containers.container import Options, finished
from dsharness.containers.engine import Engine
from dsharness.model import AptPackages, Bootstrap, Image, Row

ASK_LIMIT_S = 300.0
# The image's own sources; nothing is written but lists, and apt needs no other user for that.
ASK = """
apt() {
    apt-get -qq -o APT::Update::Error-Mode=any -o Acquire::Check-Valid-Until=false \\
        -o APT::Sandbox::User=root -o Dir::State::Lists=/tmp/lists -o Dir::Cache=/tmp/cache "$@"
}
mkdir -p /tmp/lists/partial /tmp/cache/archives/partial
apt update >&2
apt --simulate --quiet=0 dist-upgrade
"""
NOTHING = "0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded."


def offers_nothing_newer(engine: Engine, row: Row, image: Image) -> bool:
    """True only where apt says so; False where nobody can tell without installing the row."""
    if not (isinstance(row.base, Bootstrap) and isinstance(row.packages, AptPackages)):
        return False
    answer = finished(
        engine,
        image.reference,
        "sh",
        "-ec",
        ASK,
        purpose="archive",
        limit_s=ASK_LIMIT_S,
        options=Options(network="host", environment=(("LC_ALL", "C"),)),
    )
    return answer.ok and NOTHING in answer.stdout.splitlines()
