"""Meshes for published claims: what their runs are divided by, and what fails is said."""

from __future__ import annotations

from typing import Any

import pytest
from shipped import MATRIX

from dsbisect.claims.binds_measured import ArmRuns
from dsharness.matrix import find_workload
from dsharness.model import Machine, Measurement, Sample
from dsharness.products.published_claims import Ratios, published_claims
from dsproducts.mesh import meshes_measured
from dsproducts.mesh.meshes_measured import MeshesMeasured, measure_meshes
from dsresults.compare.claim_outcomes import ClaimVerdict
from dsresults.compare.trial_claims import RatioFigures, judge_ratios

FIRST, SECOND = "mesh-fastd-debian-12", "mesh-tinc-debian-12"


class Lab:
    """All that the experiment asks of the lab of claims."""

    matrix = MATRIX


def sample(workload: str, turn: int, *, invalid: tuple[str, ...] = (), **metrics: float) -> Sample:
    values = {"cpu": 1310.72, "rate": 300.0, "cost": 1.0, **metrics}
    return Sample(
        id=f"s-{turn}",
        campaign_id="c",
        candidate_id="row",
        settings_id="default",
        workload_id=workload,
        image_key="",
        turn=turn,
        started_at="2026-11-29T23:00:00+00:00",
        duration_s=1.0,
        operations=300,
        metrics={
            name.replace("_", "-"): Measurement(value=value, unit="")
            for name, value in values.items()
        },
        machine=Machine(id="one"),
        calibrator_us=1.0,
        steal_pct=0.0,
        errors=0,
        per_second=(),
        invalid=invalid,
        facts={},
        workload=find_workload(MATRIX, workload),
        log="",
    )


def figures(monkeypatch: Any, asked: dict[str, Any], **samples: list[Sample]) -> RatioFigures:
    """Of the first row's samples and the second's."""
    measured = MeshesMeasured.model_validate(
        {"kind": "meshes", "rows": [FIRST, SECOND], "minutes": 1, **asked}
    )
    loads = []

    def arm_runs(lab: Any, rows: Any, given: Any, runs: int) -> ArmRuns:
        (load,) = given
        loads.append(load)
        by_row = zip(rows, samples.values(), strict=True)
        return ArmRuns(
            samples={row: {load.id: of_row} for row, of_row in by_row}, failed={}, campaigns=()
        )

    monkeypatch.setattr(meshes_measured, "arm_runs", arm_runs)
    found: RatioFigures = measure_meshes(Lab(), measured)  # type: ignore[arg-type]
    if measured.seconds:
        assert [load.duration_s for load in loads] == [measured.seconds]
        assert loads[0].id != measured.workload, "its runs are others"
    return found


def test_a_speed_is_a_share_of_the_first_rows_by_cpu_time(monkeypatch) -> None:
    asked = {"workload": "mesh-tcp", "divided": "speeds"}
    found = figures(
        monkeypatch,
        asked,
        first=[sample("mesh-tcp", 0, rate=300.0, cost=2.0)],
        second=[
            sample("mesh-tcp", turn, rate=240.0, cost=cost)
            for turn, cost in enumerate((2.4, 2.5, 3))
        ],
    )
    assert found.ratios == {SECOND: 0.8}
    assert found.lines == (
        f"{FIRST}: 315 Mbit/s, 10.0 ns of CPU a byte",
        f"{SECOND}: 252 Mbit/s, 10.0 ns of CPU a byte",
    )
    assert (
        judge_ratios(Ratios(how="ratios", at_most=0.95), found).verdict is ClaimVerdict.REPRODUCED
    )


def test_a_row_without_a_valid_run_is_no_case(monkeypatch) -> None:
    why = ("the load met error the others had no traffic while a peer was stopped 1 times",)
    found = figures(
        monkeypatch,
        {"workload": "mesh-restart", "divided": "seconds"},
        first=[sample("mesh-restart", 0, latency=4_000_000.0, cpu=20_000.0)],
        second=[sample("mesh-restart", 0, invalid=why)],
    )
    assert found.ratios == {FIRST: 4.0}
    assert found.failed == (f"{SECOND} gave no valid run under mesh-restart",)
    assert found.lines == (f"{FIRST}: 4.00 s, 0.0200 s of CPU each",)


def test_memory_is_that_of_the_last_run(monkeypatch) -> None:
    found = figures(
        monkeypatch,
        {"workload": "mesh-tcp", "divided": "memory", "seconds": 20},
        first=[sample("mesh-tcp", turn, memory=memory) for turn, memory in enumerate((20, 21))],
        second=[sample("mesh-tcp", 0, memory=20.0)],
    )
    assert found.ratios == {FIRST: pytest.approx(1.05)}


def test_each_experiment_names_rows_and_a_load_that_fit() -> None:
    claims = published_claims("389-ds")
    asked = [one for one in claims.measurements.values() if isinstance(one, MeshesMeasured)]
    assert len(asked) == 4
    for one in asked:
        assert find_workload(MATRIX, one.workload).protocol == "mesh"
        assert all(MATRIX.row(row).system in {"fastd", "tinc", "vpncloud"} for row in one.rows)
