"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
