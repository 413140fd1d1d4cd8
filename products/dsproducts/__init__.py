"""The products that the lab measures, each in a folder of its own: no list of them is anywhere."""

from __future__ import annotations

from dsharness import product_folder


def assemble() -> None:
    """Tell the core where its products are; whoever starts a part of the program calls it first."""
    product_folder.assemble(__name__)
