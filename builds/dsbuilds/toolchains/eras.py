"""A product's eras: what its trees show, and what each thing needs (build_needs.yaml)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dsbuilds.toolchains.traits import Eras
from dsharness.products import build_needs_file
from dsharness.yaml_files.checked_file import read_checked

HINT = "correct the file; its head says what each key means"


def eras_of(product: str) -> Eras | None:
    """Those of a product; None when the lab does not know how to build it."""
    path = build_needs_file(product)
    return None if path is None else eras(path)


@cache
def eras(path: Path) -> Eras:
    """The data of a file, read once; FileProblemsError says what is wrong in it."""
    return read_checked(path, Eras, hint=HINT)
