"""Which toolchain builds a tree. Core pure logic."""

from __future__ import annotations

from collections.abc import Sequence

from dsbuilds.toolchains.needs import Needs
from dsharness.errors import BuildError, MatrixError
from dsharness.matrix.findings import suggestion
from dsharness.model import Toolchain


def fitting(needs: Needs, toolchains: Sequence[Toolchain]) -> tuple[Toolchain, ...]:
    """Those that offer everything, in the matrix's order; BuildError says what is missing."""
    found = tuple(each for each in toolchains if needs.words <= set(each.offers))
    if not found:
        lacking = {each.id: sorted(needs.words - set(each.offers)) for each in toolchains}
        said = "; ".join(f"{name} lacks {', '.join(words)}" for name, words in lacking.items())
        raise BuildError(
            f"unbuildable: no toolchain fits this tree: {said or 'the matrix has none'}",
            hint="add one under `toolchains:` in the matrix: docs/builds.md",
        )
    return found


def for_all(
    trees: Sequence[Needs], toolchains: Sequence[Toolchain], wished: str | None = None
) -> tuple[Toolchain, ...]:
    """One for each tree: where one fits them all, it is that one, so that libraries stay."""
    if wished is not None:
        return (named(wished, toolchains),) * len(trees)
    choices = [fitting(needs, toolchains) for needs in trees]
    common = [each for each in toolchains if all(each in choice for choice in choices)]
    return tuple((common or choice)[0] for choice in choices)


def named(name: str, toolchains: Sequence[Toolchain]) -> Toolchain:
    known = {each.id: each for each in toolchains}
    if name not in known:
        raise MatrixError(
            f"no toolchain {name!r} in the matrix.{suggestion(name, known)}",
            hint=f"there are: {', '.join(known) or 'none'}",
        )
    return known[name]
