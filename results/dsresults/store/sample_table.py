"""Samples as a flat table for spreadsheets and data frames: one row for each, as CSV or Parquet."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Mapping, Sequence

from dsharness.errors import ToolMissingError
from dsharness.extras import install_command
from dsharness.model import Campaign, Sample

Cell = str | int | float | bool | None
KINDS = (".csv", ".parquet")


def sample_rows(
    samples: Sequence[Sample], campaigns: Mapping[str, Campaign]
) -> list[dict[str, Cell]]:
    """A row for each sample, all with the same columns; a metric's is called after it."""
    metrics = dict.fromkeys(name for sample in samples for name in sample.metrics)
    return [_row(sample, campaigns.get(sample.campaign_id), sorted(metrics)) for sample in samples]


def _row(sample: Sample, campaign: Campaign | None, metrics: Sequence[str]) -> dict[str, Cell]:
    return {
        "sample": sample.id,
        "campaign": sample.campaign_id,
        "kind": campaign.kind if campaign else None,
        "series": campaign.series_id if campaign else None,
        "candidate": sample.candidate_id,
        "workload": sample.workload_id,
        "settings": sample.settings_id,
        "machine": sample.machine.id,
        "image": sample.image_key,
        "started_at": sample.started_at,
        "turn": sample.turn,
        "attempt": sample.attempt,
        "valid": sample.valid,
        "invalid": "; ".join(sample.invalid),
        "disturbed": "; ".join(sample.disturbed),
        "duration_s": sample.duration_s,
        "operations": sample.operations,
        "errors": sample.errors,
        "calibrator_us": sample.calibrator_us,
        "steal_pct": sample.steal_pct,
        "load_bound": sample.load_bound,
        "duet": sample.duet,
        **{f"metric_{name.replace('-', '_')}": sample.value(name) for name in metrics},
    }


def csv_text(rows: Sequence[Mapping[str, Cell]]) -> str:
    """RFC 4180 with a heading; what is not known is empty."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def parquet_bytes(rows: Sequence[Mapping[str, Cell]]) -> bytes:
    """ToolMissingError without pyarrow, which is an extra."""
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ToolMissingError(
            "Parquet is written by pyarrow, which is not installed",
            hint=f"{install_command('parquet')}, or name a file that ends with .csv",
        ) from error
    buffer = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist([dict(row) for row in rows]), buffer)
    return buffer.getvalue()
