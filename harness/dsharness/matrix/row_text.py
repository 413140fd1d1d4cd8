"""Rows as text: the cells of a line, one row in full, a label in a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

UNKNOWN = "first pull"  # no one can say before it


def row_cells(row: Row) -> tuple[str, ...]:
    """Return a row as the cells of a line: its id, its system, its product, and what is special."""
    about = (
        f"published {row.published.verdict}" if row.published else "",
        *_parts(suites_of(row), "part of"),
        *_parts(published_suites(row), "published as part of"),
        base_text(row.base),
        packages_text(row),
        row.note,
        _published_note(row),
    )
    return row.id, str(row.os), _product(row), "; ".join(text for text in about if text)


def row_text(matrix: Matrix, row: Row) -> str:
    """Return everything of one row, a fact a line."""
    return whole_text(row.id, _facts(matrix, row))


def whole_text(name: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return one thing of the matrix in full: its name, then each fact that has a value."""
    told_facts = [(noun, value) for noun, value in facts if value]
    width = max((len(noun) for noun, _ in told_facts), default=0)
    lines = [name]
    for noun, value in told_facts:
        lines.extend(
            f"  {noun if index == 0 else '':{width}}  {line}"
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


def _product(row: Row) -> str:
    return f"{known_of(row).title} {version_of(row) or UNKNOWN}"


def _parts(suites: dict[str, str], word: str) -> Iterator[str]:
    """Yield what brings the product along."""
    yield from (f"{word} {title} {version}" for title, version in suites.items())


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
