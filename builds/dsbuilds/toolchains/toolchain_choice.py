"""Which toolchains build a tree, and with what of it: one after the other. Core pure logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.needs import Files, Needs, needs_of
from dsharness.errors import BuildError, MatrixError
from dsharness.model import OWN, Toolchain
from dsharness.products import seen_of_source
from dsharness.yaml_files.problems import suggestion


def preferred(product: str, files: Files, toolchains: Sequence[Toolchain]) -> tuple[Toolchain, ...]:
    """Return those that were seen to fail with trees of this version come last."""
    experience = seen_of_source(product, files)
    if experience is None:
        return tuple(toolchains)
    return tuple(experience.ordered(toolchains, lambda toolchain: toolchain.id))


@dataclass(frozen=True, kw_only=True)
class BuildChoice:
    """A toolchain for a tree, and what of the tree it builds."""

    toolchain: Toolchain
    needs: Needs
    left_out: frozenset[str] = frozenset()  # optional parts of the tree that it does without

    @property
    def title(self) -> str:
        less = f", without {', '.join(sorted(self.left_out))}" if self.left_out else ""
        return f"the toolchain {self.toolchain.id}{less}"


def fitting(needs: Needs, toolchains: Sequence[Toolchain]) -> tuple[Toolchain, ...]:
    """Those that offer everything, in the matrix's order; BuildError says what is missing."""
    fits = tuple(toolchain for toolchain in toolchains if needs.words <= set(toolchain.offers))
    if not fits:
        lacking = {
            toolchain.id: sorted(needs.words - set(toolchain.offers)) for toolchain in toolchains
        }
        note = "; ".join(
            f"{toolchain.id} lacks {', '.join(lacking[toolchain.id])}"
            for toolchain in toolchains
            if toolchain.offers
        )
        raise BuildError(
            f"unbuildable: no toolchain fits this tree: {note or 'the matrix has none'}",
            hint="add one under `toolchains:` in the matrix: docs/builds.md",
        )
    return fits


def choices_of(files: Files, toolchains: Sequence[Toolchain]) -> tuple[BuildChoice, ...]:
    """All choices, best first: whole in each toolchain that fits, then without what is optional."""
    files = cache(files)
    whole = needs_of(files)
    toolchains = preferred(whole.product, files, toolchains)
    choices, refused = [], None
    try:
        choices += [
            BuildChoice(toolchain=toolchain, needs=whole)
            for toolchain in fitting(whole, toolchains)
        ]
    except BuildError as error:
        if not whole.optional:
            raise
        refused = error
    if whole.optional:
        less = without(files, whole.optional)
        try:
            choices += [
                BuildChoice(toolchain=toolchain, needs=less, left_out=whole.optional)
                for toolchain in fitting(less, toolchains)
            ]
        except BuildError:
            if refused is not None:
                raise refused from None
    return tuple(choices)


def without(files: Files, parts: frozenset[str]) -> Needs:
    """Return what a tree needs that is built without some of its parts, and says so."""
    note = f"built without {', '.join(sorted(parts))}: it is optional, and could not be built"
    needs = needs_of(files, parts)
    return replace(needs, notes=(*needs.notes, note))


def for_range(
    ends: Sequence[tuple[BuildChoice, ...]], toolchains: Sequence[Toolchain]
) -> tuple[tuple[Toolchain, ...], str | None]:
    """The order in which a range's trees try toolchains, and a note if none builds both ends.

    One that builds all ends comes first, so that libraries are the same on both sides.
    """
    orders = [
        [choice.toolchain for choice in choices if choice.left_out == choices[0].left_out]
        for choices in ends
    ]
    common = [
        toolchain for toolchain in toolchains if all(toolchain in choice for choice in orders)
    ]
    # One that failed with a version comes last among its ways: the end that it suits least decides.
    common.sort(
        key=lambda toolchain: max((choice.index(toolchain) for choice in orders), default=0)
    )
    note = None
    if not common:
        each_end = " and ".join(dict.fromkeys(choices[0].toolchain.id for choices in ends))
        note = (
            f"no toolchain builds both ends: they are built by {each_end}, so their libraries "
            "differ too, and a difference may come from those"
        )
    return tuple(dict.fromkeys([*common, *toolchains])), note


def for_databases(ends: Sequence[tuple[str, ...]]) -> tuple[str | None, str | None]:
    """The library that keeps the data on both sides of a range, and a note where the range matters.

    Each end names those that it has, its own choice first. None where an end has no choice to make.
    """
    if not all(ends) or (all(len(end) == 1 for end in ends) and len(set(ends)) == 1):
        return None, None
    own = list(dict.fromkeys(end[0] for end in ends))
    common = [library for library in ends[-1] if all(library in end for end in ends)]
    if not common:
        libraries = " and ".join(own)
        return None, (
            f"no database library serves both ends: they keep their data in {libraries}, so a "
            "difference may come from that"
        )
    if len(own) == 1:
        return own[0], None
    return common[0], (
        f"the default database library changes in this range ({' to '.join(own)}): all commits "
        f"keep their data in {common[0]}; settings with `database: {OWN}` give each its own"
    )


def named(name: str, toolchains: Sequence[Toolchain]) -> Toolchain:
    by_id = {toolchain.id: toolchain for toolchain in toolchains}
    if name not in by_id:
        raise MatrixError(
            f"no toolchain {name!r} in the matrix.{suggestion(name, by_id)}",
            hint=f"`dsbisect list toolchains` describes them: {', '.join(by_id) or 'none'}",
        )
    return by_id[name]


Made = TypeVar("Made")


def first_that_works(
    choices: Sequence[BuildChoice],
    make: Callable[[BuildChoice], Made],
    progress: Callable[[str], None],
    *,
    ends: bool = False,
) -> tuple[Made, BuildChoice]:
    """Return what the first way made that works; the next is tried only where it may help.

    ``ends``: of a range of which nothing is known. There another compiler may help, too; of the
    commits between, what one compiler refuses is broken.
    """
    for choice, following in zip(choices, [*choices[1:], None], strict=True):
        try:
            return make(choice), choice
        except UnbuildableError as error:
            if following is None or not (
                error.toolchain_may_be_wrong
                or (ends and error.compiler_may_be_wrong and following.left_out == choice.left_out)
            ):
                raise
            progress(f"{error.message}; trying {following.title}")
    raise AssertionError("there is at least one way")
