"""`doctor --noise`: what measuring one row against itself shows of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dsbisect.noise_study import NoiseRequest, measure_noise
from dsbuilds.build_request import check_rows
from dsharness.containers.engine_probe import detect
from dsharness.matrix import find_row, find_settings, find_workload, load_matrix
from dslab.lab_conditions import default_workloads
from dsresults.compare.metric_noise import MetricNoise, noise_of
from dsresults.store import Store

if TYPE_CHECKING:
    from dsharness.model import Sample

DIFFERS = 1.5  # times: then odd runs make most of the CV


def show_noise(
    row: str | None,
    workload: str | None,
    runs: int,
    matrix: Path | None,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Measure it, and print one line for each metric."""
    from dsbisect.cli.search_progress import Watch

    checked = load_matrix(matrix)
    known = find_row(checked, row or checked.rows[0].id)
    load = (
        find_workload(checked, workload)
        if workload
        else default_workloads(checked, [known.system])[0]
    )
    check_rows(checked, (known,))
    request = NoiseRequest(
        matrix=checked,
        workloads=(load,),
        settings=find_settings(checked, "default"),
        row=known.id,
        runs=runs,
    )
    with Store.open(store) as opened, Watch() as watch:
        taken = measure_noise(request, detect(), opened, watch)
    first, second = (
        [sample for sample in taken if sample.candidate_id == name] for name in request.line
    )
    lines = noise_of(first, second)
    refused = [sample for sample in taken if not sample.valid]
    if as_json:
        typer.echo(json.dumps(document(request, lines, refused), indent=2))
        return
    for line in told(request, lines, refused):
        typer.echo(line)


def document(
    request: NoiseRequest, lines: Sequence[MetricNoise], refused: Sequence[Sample]
) -> dict[str, object]:
    """The findings, for programs."""
    return {
        "row": request.row,
        "workload": request.workloads[0].named,
        "runs": request.runs,
        "metrics": [line.model_dump(mode="json") for line in lines],
        "invalid": [
            {"sample": each.id, "turn": each.turn, "why": list(each.invalid)} for each in refused
        ],
    }


def told(
    request: NoiseRequest, lines: Sequence[MetricNoise], refused: Sequence[Sample]
) -> Iterator[str]:
    """The findings, for people."""
    yield f"{request.row} against itself, {request.workloads[0].named}, {request.runs} runs a side"
    yield f"{'metric':17}{'mean':>12} {'unit':18}{'CV':>8}  20 runs would show"
    for line in lines:
        yield (
            f"{line.metric:17}{line.mean:12.4g} {line.unit:18}{_percent(line.cv_pct):>8}  "
            f"{_shown(line)}{_robust(line)}"
        )
    for each in refused:
        yield f"not counted: turn {each.turn}, {each.candidate_id}: {'; '.join(each.invalid)}"


def _shown(line: MetricNoise) -> str:
    if line.smallest is None:
        return "not known: fewer than two pairs"
    if line.smallest_pct is None:
        return f"{line.smallest:.3g} {line.unit} more"
    return f"{_percent(line.smallest_pct)}"


def _robust(line: MetricNoise) -> str:
    if not line.cv_pct or line.robust_cv_pct is None or line.cv_pct < DIFFERS * line.robust_cv_pct:
        return ""
    return f" (CV by medians {_percent(line.robust_cv_pct)}: odd runs)"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"
