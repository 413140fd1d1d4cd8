"""Five random kills over a real search; `make bench-faults` does sixty."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from dsharness.containers.engine import Engine
from dsharness.process.deadline import Deadline

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from faults import Campaign, rows

pytestmark = pytest.mark.whole

KILLS, LIMIT_S = 5, 900.0
VICTIMS = ("lab", "container", "podman")  # nothing is built while samples are taken


def test_the_answer_outlives_random_kills(engine: Engine, tmp_path: Path) -> None:
    case = rows(tmp_path / "lab")
    campaign = Campaign(
        engine=engine, case=case, chance=random.Random(20261121), kills=KILLS,
        deadline=Deadline.after(LIMIT_S), longest_s=8.0, late=1.0, victims=VICTIMS,
    )  # fmt: skip
    tally = campaign.run()
    said = "\n".join(tally.lines(case.name))
    assert tally.wrongs == [], said
    assert (tally.kills.total(), tally.searches >= 1) == (KILLS, True), said
