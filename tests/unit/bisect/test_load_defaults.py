"""What `dsbisect measure load ROW` asks of a row when nobody says what."""

from __future__ import annotations

import pytest
from shipped import MATRIX

from dsbisect.load_study import live_workload, usual_load
from dsharness.model import Row
from dsharness.systems import answers


@pytest.mark.parametrize("row", MATRIX.rows, ids=lambda row: row.id)
def test_every_row_has_a_load_that_it_answers_and_several_workers_may_drive(row: Row) -> None:
    chosen = live_workload(usual_load(MATRIX, row), None, None, 2)
    assert answers(row.system, chosen)
