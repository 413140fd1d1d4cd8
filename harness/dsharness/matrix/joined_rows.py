"""A matrix together with the rows of the products that it names, as one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from dsharness.products.catalog import file_of_product, product_ids
from dsharness.yaml_files.problems import (
    FileProblemsError,
    KeyPath,
    Problem,
    suggestion,
)
from dsharness.yaml_files.yaml_source import Document, read_document

FILE = "rows.yaml"
LISTS = ("rows", "series", "workloads", "settings", "toolchains")
# Keys whose entries come among those of the matrix: where each belongs.
ENTRIES = {"loads": ("tools", "loads"), "suite": ("defaults", "suite")}


def joined(document: Document, *, hint: str) -> Document:
    """The document with what the products add; each place says in which file it is."""
    named = document.data.get("products", [])
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    unknown = list(_unknown(names))
    for name in names:
        path = file_of_product(name, FILE) if name in product_ids() else None
        if path is not None:
            document = _with(document, _read(path, hint))
    return replace(document, findings=(*document.findings, *unknown))


def _unknown(names: Iterable[str]) -> Iterator[Problem]:
    having = [name for name in product_ids() if file_of_product(name, FILE)]
    for index, name in enumerate(names):
        if name not in having:
            allowed = f"no such product with a {FILE}; there are: {', '.join(having)}."
            yield Problem(
                path=("products", index), value=name, allowed=allowed + suggestion(name, having)
            )


def _read(path: Path, hint: str) -> Document:
    document = read_document(path, hint=hint)
    keys = (*ENTRIES, *LISTS)
    unknown = f"unknown key; allowed: {', '.join(keys)}"
    odd = [Problem(path=(key,), value=None, allowed=unknown) for key in {*document.data} - {*keys}]
    problems = [*document.findings, *odd]
    if problems:
        raise FileProblemsError(path, problems, document.places, hint=hint)
    return document


def _with(whole: Document, part: Document) -> Document:
    """Lists are longer by those of the part, and its entries are among the others."""
    data, places = dict(whole.data), dict(whole.places)
    shifts = dict[str, int]()
    for key in LISTS:
        before, more = data.get(key, []), part.data.get(key, [])
        if isinstance(before, list) and isinstance(more, list):
            shifts[key] = len(before)
            data[key] = [*before, *more]
    for key, (section, name) in ENTRIES.items():
        values, more = data.get(section), part.data.get(key, {})
        entries = values.get(name, {}) if isinstance(values, dict) else None
        if isinstance(values, dict) and isinstance(entries, dict) and isinstance(more, dict):
            data[section] = {**values, name: {**entries, **more}}
    for path, place in part.places.items():
        if (moved := _moved(path, shifts)) is not None:
            places[moved] = replace(place, file=part.path)
    return replace(whole, data=data, places=places)


def _moved(path: KeyPath, shifts: dict[str, int]) -> KeyPath | None:
    match path:
        case (str(key), int(index), *rest) if key in shifts:
            return (key, index + shifts[key], *rest)
        case (str(key), entry, *rest) if key in ENTRIES:
            return (*ENTRIES[key], entry, *rest)
        case _:
            return None
