"""Rows as text: a line of a table, one row in full, a label in a drawing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import assert_never

from dsharness.model import (
    AptPackages,
    Bootstrap,
    DnfPackages,
    KojiPackages,
    Matrix,
    PreinstalledPackages,
    Registry,
    Row,
)
from dsharness.products.catalog import installs, known_of, published_suites, suites_of, version_of

COLUMNS = ("id", "OS", "product", "verdict")
UNKNOWN = "first pull"  # no one can say before it
WIDTH = 80


def rows_text(rows: Sequence[Row]) -> str:
    """A table of rows that is whole in 80 columns: where from, and the note, stand below each."""
    cells = [COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    lines = [_aligned(COLUMNS, widths), _aligned(["-" * width for width in widths], widths)]
    for row, line in zip(rows, cells[1:], strict=True):
        lines.append(_aligned(line, widths))
        parts = (
            *_parts(suites_of(row), "part of"),
            *_parts(published_suites(row), "published as part of"),
            base_text(row.base),
            packages_text(row),
            row.note,
            _published_note(row),
        )
        lines.append(_wrapped("; ".join(text for text in parts if text), "    "))
    return "\n".join(lines) + "\n"


def row_text(matrix: Matrix, row: Row) -> str:
    """Return everything of one row, a fact a line."""
    facts = [(name, value) for name, value in _facts(matrix, row) if value]
    width = max(len(name) for name, _ in facts)
    lines = [row.id]
    for name, value in facts:
        lines.extend(
            f"  {name if index == 0 else '':{width}}  {line}"
            for index, line in enumerate(value.splitlines())
        )
    return "\n".join(lines) + "\n"


def row_label(row: Row) -> str:
    """Return the label of a row in a drawing, in addition to its id."""
    verdict = f", published {row.published.verdict}" if row.published else ""
    return f"{row.os}, {_product(row)}{verdict}"


def base_text(base: Bootstrap | Registry) -> str:
    """Return where the base image comes from."""
    if isinstance(base, Bootstrap):
        return f"{base.tool} {base.suite}"
    return base.image if base.digest is None else f"{base.image}@{base.digest}"


def packages_text(row: Row) -> str:
    """Return where the product comes from."""
    packages = row.packages
    match packages:
        case AptPackages():
            text = "apt: frozen archive" if packages.sources else "apt"
        case DnfPackages():
            text = ", ".join(("dnf", *(f"module {stream}" for stream in packages.modules)))
        case KojiPackages():
            text = f"Koji {packages.nvr}"
        case PreinstalledPackages():
            text = "in the image"
        case _:
            assert_never(packages)
    return text


def _cells(row: Row) -> tuple[str, ...]:
    verdict = row.published.verdict if row.published else ""
    return (row.id, str(row.os), _product(row), verdict)


def _product(row: Row) -> str:
    return f"{known_of(row).title} {version_of(row) or UNKNOWN}"


def _parts(suites: dict[str, str], word: str) -> Iterator[str]:
    """Yield what brings the product along."""
    yield from (f"{word} {title} {version}" for title, version in suites.items())


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _published_note(row: Row) -> str:
    return row.published.note if row.published else ""


def _facts(matrix: Matrix, row: Row) -> Iterator[tuple[str, str]]:
    yield "OS", str(row.os)
    yield known_of(row).title, version_of(row) or f"known after the {UNKNOWN}"
    yield from suites_of(row).items()
    yield "system", row.system
    yield "image template", row.family
    yield "base", base_text(row.base)
    yield "packages", packages_text(row)
    yield "install", ", ".join(installs(row))
    if isinstance(row.packages, AptPackages):
        yield "sources", "\n".join(row.packages.sources)
    if isinstance(row.packages, DnfPackages | KojiPackages):
        repositories = row.packages.repositories.items()
        yield "repositories", "\n".join(f"{name}: {url}" for name, url in repositories)
    yield "pins", ", ".join(f"{name} {version}" for name, version in row.pins.items())
    if row.published is not None:
        titles = {source.id: source.title for source in matrix.sources}
        yield "published verdict", row.published.verdict
        yield "published by", titles[row.published.source]
        for title, version in published_suites(row).items():
            yield f"published {title}", version
        yield "about the published row", row.published.note
    yield "note", row.note
    inside = [
        series.id for series in matrix.series if row.id in (*series.rows, *_named(series.parents))
    ]
    yield "series", ", ".join(inside)


def _named(parents: dict[str, tuple[str, ...]]) -> set[str]:
    return {name for child, above in parents.items() for name in (child, *above)}
