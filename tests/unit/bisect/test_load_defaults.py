"""What `dsbisect measure load ROW` asks of a row when nobody says what."""

from __future__ import annotations

import pytest
from shipped import MATRIX

from dsbisect.load_study import live_workload, usual_load
from dsharness.errors import MatrixError
from dsharness.loads import LIVE
from dsharness.model import Row
from dsharness.systems import answers
from dslab.lab_conditions import fitting_workloads


def is_driven(row: Row) -> bool:
    """Whether any load that can be looked at speaks to such a server."""
    return any(load.tool in LIVE for load in fitting_workloads(MATRIX, [row.system]))


DRIVEN = [row for row in MATRIX.rows if is_driven(row)]
OTHERS = [row for row in MATRIX.rows if not is_driven(row)]


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.id)
def test_a_row_that_no_such_load_speaks_to_is_refused(row: Row) -> None:
    assert row.system in {"fastd", "tinc", "vpncloud"}  # their traffic is a tool's own
    with pytest.raises(MatrixError, match=f"no usual load that {row.id} answers"):
        usual_load(MATRIX, row)


@pytest.mark.parametrize("row", DRIVEN, ids=lambda row: row.id)
def test_every_row_has_a_load_that_it_answers_and_several_workers_may_drive(row: Row) -> None:
    chosen = live_workload(usual_load(MATRIX, row), None, None, 2)
    assert answers(row.system, chosen)
