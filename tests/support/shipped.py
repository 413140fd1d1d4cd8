"""The matrix that the lab ships, read once for all tests."""

from __future__ import annotations

from pathlib import Path

from dsharness.matrix import load_matrix
from dsproducts import assemble

assemble()

MATRIX = load_matrix(Path(__file__).parents[2] / "matrix.yaml")
