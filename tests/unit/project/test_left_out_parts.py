"""The search without a part answers as before where the part has nothing to do."""

from __future__ import annotations

import numpy as np
import pytest

from dssearch.bayes import posterior
from searchbench.kinds import Kind
from searchbench.methods import PARTS, WITHOUT, left_out
from searchbench.play import play

QUIET = Kind(n=16, d=4.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("part", PARTS)
def test_a_plain_step_is_found_without_it(part: str) -> None:
    assert play(WITHOUT[part], QUIET, 1, 200).right


def test_without_ramps_none_is_possible() -> None:
    places = np.array([0, 4, 8, 31])
    assert posterior.ramp_masses(places).sum() == pytest.approx(1)
    with left_out("ramps"):
        assert not posterior.ramp_masses(places).any()


@pytest.mark.parametrize("part", PARTS)
def test_it_is_there_again_afterwards(part: str) -> None:
    name, _ = PARTS[part]
    before = getattr(posterior, name)
    with left_out(part):
        assert getattr(posterior, name) is not before
    assert getattr(posterior, name) is before
