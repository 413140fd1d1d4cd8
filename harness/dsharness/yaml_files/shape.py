"""Whether the data has the shape the model asks for, in the words of the file."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic
from pydantic_core import ErrorDetails

from dsharness.model import Value
from dsharness.yaml_files.problems import FileProblemsError, KeyPath, KeyPlace, Problem, suggestion
from dsharness.yaml_files.yaml_source import Document, read_document

V = TypeVar("V", bound=Value)
Schema = dict[str, Any]
Location = tuple[str | int, ...]


@functools.cache
def schema_of(model: type[Value]) -> Schema:
    """Return what a file of this model may say, as JSON Schema 2020-12."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}


def allowed_keys(model: type[Value], location: Location) -> tuple[str, ...]:
    """The keys a mapping at the model's location may have; empty when any key may stand there."""
    return tuple(_at(model, location).get("properties", ()))


def variants(model: type[Value], location: Location) -> tuple[str, ...]:
    """Return the kinds a union at the model's location knows."""
    return tuple(_at(model, location).get("discriminator", {}).get("mapping", ()))


def _at(model: type[Value], location: Location) -> Schema:
    root = schema_of(model)
    schema = root
    for part in location:
        schema = _below(_resolved(root, schema), part)
    return _resolved(root, schema)


def _resolved(root: Schema, schema: Schema) -> Schema:
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if options:
        schema = options[0]
    reference = schema.get("$ref")
    definitions: dict[str, Schema] = root.get("$defs", {})
    return definitions[reference.rsplit("/", 1)[-1]] if reference else schema


def _below(schema: Schema, part: str | int) -> Schema:
    """Go one step down: into a list, the variant of a union, a known key, or any key."""
    if isinstance(part, int):
        items: Schema = schema.get("items", {})
        return items
    tags = schema.get("discriminator", {}).get("mapping", {})
    if part in tags:
        return {"$ref": tags[part]}
    below = schema.get("properties", {}).get(part, schema.get("additionalProperties", {}))
    return below if isinstance(below, dict) else {}


def _shaped(
    model: type[V], data: Mapping[str, object], places: Mapping[KeyPath, KeyPlace]
) -> tuple[V | None, list[Problem]]:
    """Return the value of the data, or everything in it that the model does not allow."""
    try:
        # JSON's strictness is the one wanted: lists become tuples, but no number becomes text
        value = model.model_validate_json(json.dumps(data), strict=True)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)
        problems = [_finding(model, fault, data, places) for fault in details if not _echo(fault)]
        return None, problems
    # the model keeps a field for the loader, which a file may not set
    fields = model.model_fields
    kept_keys = [key for key in data if key in fields and fields[key].exclude]
    return value, [
        Problem(path=(key,), value=None, allowed=_unknown(model, (), key)) for key in kept_keys
    ]


def _echo(detail: ErrorDetails) -> bool:
    """A list whose every item is wrong is counted as too short as well; the items say it all."""
    return detail["type"] == "too_short" and bool(detail["input"])


def key_path(location: tuple[int | str, ...], data: object) -> KeyPath:
    """Return the model's location without what is not in the file: the names of union variants."""
    path: list[str | int] = []
    for index, part in enumerate(location):
        inside = _entries(data)
        if part in inside:
            data = inside[part]
        elif index < len(location) - 1 or part == "[key]":
            continue
        path.append(part)
    return tuple(path)


def _entries(data: object) -> dict[int | str, object]:
    if isinstance(data, list):
        return dict(enumerate(data))
    return data if isinstance(data, dict) else {}


def _finding(
    model: type[Value],
    detail: ErrorDetails,
    data: Mapping[str, object],
    places: Mapping[KeyPath, KeyPlace],
) -> Problem:
    path = key_path(detail["loc"], data)
    if detail["type"].startswith("union_tag"):
        discriminator = detail.get("ctx", {}).get("discriminator", "kind")
        path = (*path, str(discriminator).strip("'"))
    place = places.get(path)
    value = place.text if place is not None else None
    if detail["type"] == "missing":
        value = None
    return Problem(path=path, value=value, allowed=_allowed(model, detail, value))


def _unknown(model: type[Value], location: Location, key: str) -> str:
    keys = allowed_keys(model, location)
    return f"unknown key; allowed: {', '.join(keys)}.{suggestion(key, keys)}"


COLLECTIONS = {
    "too_short": "at least {min_length} is needed",
    "too_long": "at most {max_length}; here are {actual_length}",
    "tuple_type": "a list is needed",
    "list_type": "a list is needed",
    "model_type": "a mapping is needed",
    "model_attributes_type": "a mapping is needed",
    "dict_type": "a mapping is needed",
}


def _allowed(model: type[Value], detail: ErrorDetails, value: str | None) -> str:
    location, context = detail["loc"], detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            allowed = "missing; it must be given"
        case "union_tag_not_found":
            allowed = f"missing; allowed: {', '.join(variants(model, location))}"
        case "union_tag_invalid":
            kinds = variants(model, location)
            allowed = f"allowed: {', '.join(kinds)}.{suggestion(value or '', kinds)}"
        case "extra_forbidden":
            allowed = _unknown(model, location[:-1], str(location[-1]))
        case "literal_error" | "enum":
            words = re.findall(r"'([^']*)'", str(context["expected"]))
            allowed = f"allowed: {context['expected']}.{suggestion(value or '', words)}"
        case "string_type" if isinstance(detail["input"], int | float):
            allowed = f'YAML reads this as a number or a truth value; quote it: "{value}"'
        case "string_pattern_mismatch":
            allowed = f"allowed: text that matches {context['pattern']}"
        case kind if kind in COLLECTIONS:
            allowed = COLLECTIONS[kind].format(**context)
        case _:
            allowed = detail["msg"].replace("Input should", "should").replace("String", "text")
    return allowed


def checked(model: type[V], document: Document) -> tuple[V | None, list[Problem]]:
    """Return the value of a file that has the model's shape, and everything wrong in it.

    A value that could not even be read is told once.
    """
    unread = {problem.path for problem in document.findings if problem.value is not None}
    value, shape = _shaped(model, document.data, document.places)
    return value, [*document.findings, *(fault for fault in shape if fault.path not in unread)]


def refuse_problems(path: Path, problems: Sequence[Problem], *, hint: str) -> None:
    """FileProblemsError with file and line of each, for what was found after a file was read."""
    if problems:
        raise FileProblemsError(path, problems, read_document(path, hint=hint).places, hint=hint)


def read_checked(path: Path, model: type[V], *, hint: str = "correct the file") -> V:
    """Return one value; FileProblemsError has file and line of each thing that is wrong."""
    document = read_document(path, hint=hint)
    value, problems = checked(model, document)
    if problems or value is None:
        raise FileProblemsError(path, problems, document.places, hint=hint)
    return value
