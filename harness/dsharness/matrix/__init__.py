"""matrix.yaml and the releases table: read, checked, named, drawn."""

from __future__ import annotations

from dsharness.matrix.loader import (
    find_matrix,
    find_profile,
    find_row,
    find_series,
    find_settings,
    find_workload,
    load_matrix,
)

__all__ = [
    "find_matrix",
    "find_profile",
    "find_row",
    "find_series",
    "find_settings",
    "find_workload",
    "load_matrix",
]
