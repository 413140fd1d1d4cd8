"""How much a disturbed run counts: estimated from the runs themselves."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import sample_of

from dsharness.measure.metrics import COST
from dsharness.model import Sample
from dssearch.bayes.evidence import Evidence, evidence
from dssearch.bayes.machine_speed import widened
from dssearch.bayes.track import track
from dssearch.question import History

NAMES = ("a", "b")


def seen(samples: list[Sample]) -> Evidence:
    groups = {name: tuple(s for s in samples if s.candidate_id == name) for name in NAMES}
    found = evidence(COST, History(samples=groups), track(NAMES, {}), 0, 1)
    assert found is not None
    return found


def runs(steal_pct: list[float], noise: list[float]) -> list[Sample]:
    chance = np.random.default_rng(7)
    return [
        sample_of(
            NAMES[turn % 2], float(np.exp(size * chance.normal())), turn,
            id=str(turn), steal_pct=steal,
        )
        for turn, (steal, size) in enumerate(zip(steal_pct, noise, strict=True))
    ]  # fmt: skip


def test_a_quiet_machine_changes_nothing() -> None:
    quiet = seen(runs([0.0] * 10, [0.02] * 10))
    assert widened(quiet) is quiet


def test_stolen_time_that_does_no_harm_costs_next_to_nothing() -> None:
    steal = [0.0, 0.0, 18.0, 12.0, 15.0, 18.0] * 8
    scales = widened(seen(runs(steal, [0.02] * 48))).scales
    assert scales.max() < 1.3


def test_stolen_time_that_does_harm_is_given_less_weight() -> None:
    steal = [0.0, 0.0, 0.0, 18.0, 15.0, 0.0] * 8
    scales = widened(seen(runs(steal, [0.02 if pct < 5 else 0.2 for pct in steal]))).scales
    assert scales[0] == pytest.approx(1)
    assert scales[3] > 4


def test_before_anything_is_known_a_disturbed_run_counts_for_a_little_less() -> None:
    scales = widened(seen(runs([0.0, 10.0], [0.02] * 2))).scales
    assert 1.2 < scales[1] < 4


@pytest.mark.parametrize("disturbed", [{"gap_s": 3.0}, {"calibrator_us": 2000.0}])
def test_what_else_disturbs_a_run(disturbed: dict[str, float]) -> None:
    samples = runs([0.0] * 6, [0.02] * 6)
    samples[3] = samples[3].model_copy(update=disturbed)
    scales = widened(seen(samples)).scales
    assert scales[3] > 1.2
    assert scales[0] < 1.05
