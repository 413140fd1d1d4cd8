"""Which toolchains were seen to build which versions of a product: seen_builds.yaml.

A survey writes it, so that nobody has to try what was tried before. Core pure logic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from dsharness.model import Identifier, Value
from dsharness.products.product import numbers

Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$", max_length=64)]
Named = TypeVar("Named")

HEAD = """\
# Which toolchains were seen to build, start and bind which versions, and which were not: what a
# tree's own files say of its version decides which toolchain is tried first.
# Written by `dsbisect build survey --knowledge FILE`; docs/builds.md.
"""


class SeenSpan(Value):
    """Versions in a row of which the same is known; both ends belong to it."""

    since: Version
    until: Version
    works: tuple[Identifier, ...] = Field(default=(), description="toolchains of the matrix")
    fails: tuple[Identifier, ...] = ()

    def holds(self, version: tuple[int, ...]) -> bool:
        return numbers(self.since) <= version <= numbers(self.until)

    def ordered(self, toolchains: Iterable[Named], name: Callable[[Named], str]) -> list[Named]:
        """Those that fail last, otherwise in the given order.

        One that works does not pass one that nobody tried: a search gives the order in which all
        its trees have the same libraries.
        """
        return sorted(toolchains, key=lambda toolchain: name(toolchain) in self.fails)


class SeenBuilds(Value):
    """The whole of the file."""

    seen: tuple[SeenSpan, ...] = ()

    def at(self, version: str, branch_of: Callable[[str], str]) -> SeenSpan | None:
        """What is known of a version, or of the nearest one of its branch: best an older one.

        A tree between two releases has the older one's version, or that of none.
        """
        version_numbers, branch = numbers(version), branch_of(version)
        for span in self.seen:
            if span.holds(version_numbers):
                return span
        older = [span for span in self.seen if numbers(span.until) < version_numbers]
        newer = [span for span in self.seen if numbers(span.since) > version_numbers]
        below = max(older, key=lambda span: numbers(span.until), default=None)
        if below is not None and branch_of(below.until) == branch:
            return below
        above = min(newer, key=lambda span: numbers(span.since), default=None)
        return above if above is not None and branch_of(above.since) == branch else None


class Seen(Value):
    """One tree of a version, in one toolchain."""

    version: Version
    toolchain: Identifier
    works: bool


def seen_builds_of(observed: Iterable[Seen], before: SeenBuilds) -> SeenBuilds:
    """Versions in a row with equal knowledge become one span.

    A toolchain that built one tree of a version works: the others may be broken in themselves. What
    was known before of these versions stays, where it was not tried again.
    """
    by_version: dict[tuple[int, ...], tuple[str, dict[str, bool]]] = {}
    for sighting in observed:
        _, works_by_toolchain = by_version.setdefault(
            numbers(sighting.version), (sighting.version, {})
        )
        works_by_toolchain[sighting.toolchain] = (
            works_by_toolchain.get(sighting.toolchain, False) or sighting.works
        )
    spans: list[SeenSpan] = []
    for key in sorted(by_version):
        version, works_by_toolchain = by_version[key]
        new = _span(version, {**_known(before, key), **works_by_toolchain})
        if spans and (spans[-1].works, spans[-1].fails) == (new.works, new.fails):
            new = new.model_copy(update={"since": spans.pop().since})
        spans.append(new)
    return SeenBuilds(seen=tuple(spans))


def _known(before: SeenBuilds, version: tuple[int, ...]) -> dict[str, bool]:
    span = next((span for span in before.seen if span.holds(version)), None)
    if span is None:
        return {}
    return {**dict.fromkeys(span.fails, False), **dict.fromkeys(span.works, True)}


def _span(version: str, works_by_toolchain: Mapping[str, bool]) -> SeenSpan:
    return SeenSpan(
        since=version,
        until=version,
        works=tuple(sorted(name for name, works in works_by_toolchain.items() if works)),
        fails=tuple(sorted(name for name, works in works_by_toolchain.items() if not works)),
    )


def yaml_of(builds: SeenBuilds) -> str:
    """The file's text, a line for each span."""
    lines = [
        f'  - {{since: "{span.since}", until: "{span.until}", works: {_list(span.works)}, '
        f"fails: {_list(span.fails)}}}"
        for span in builds.seen
    ]
    return HEAD + ("\n".join(["seen:", *lines]) if lines else "seen: []") + "\n"


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"
