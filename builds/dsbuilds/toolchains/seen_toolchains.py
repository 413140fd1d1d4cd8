"""The toolchains in the order in which trees like this one were seen to build."""

from __future__ import annotations

from collections.abc import Sequence

from dsbuilds.toolchains.traits import Files
from dsharness.model import Toolchain
from dsharness.products import seen_of_source


def preferred(product: str, files: Files, toolchains: Sequence[Toolchain]) -> tuple[Toolchain, ...]:
    """Those that were seen to fail with trees of this version come last."""
    seen = seen_of_source(product, files)
    if seen is None:
        return tuple(toolchains)
    return tuple(seen.ordered(toolchains, lambda each: each.id))
