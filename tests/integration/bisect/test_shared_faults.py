"""Ten faults in searches of two workers, over a real PostgreSQL and the real queue.

Each worker is a process; only its lab is made up. `make bench-faults BENCH="--shared 50"` does
more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from postgresql_cluster import running_cluster

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from shared_faults import FAULTS, faulty

TEN = [name for name in FAULTS if name != "gone"]  # it waits as long as `late` does


@pytest.mark.parametrize(
    "faults", [pytest.param(TEN, id="ten"), pytest.param(["gone"], marks=pytest.mark.whole)]
)
def test_faults_change_no_answer_and_lose_no_sample(faults: Sequence[str], tmp_path: Path) -> None:
    with running_cluster() as cluster, faulty(cluster, tmp_path, seed=20261127) as fleet:
        fleet.run(faults)
        said = "\n".join(fleet.lines())
    assert fleet.wrongs == [], said
    assert fleet.done.total() == len(faults), said
    told = {path.name: path.read_text() for path in tmp_path.glob("told-*")}
    assert "Traceback" not in "".join(told.values()), told
    if "schema_upgraded" in faults:
        said_by = [name for name, words in told.items() if "was upgraded by a newer" in words]
        assert sorted(said_by) == ["told-a", "told-b"], told
