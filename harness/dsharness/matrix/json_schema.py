"""The JSON Schema of matrix.yaml: for editors, and for saying which keys are allowed where."""

from __future__ import annotations

import functools
import json
from typing import Any

from dsharness.model import Matrix

Schema = dict[str, Any]
Location = tuple[str | int, ...]


@functools.cache
def matrix_schema() -> Schema:
    """What a matrix may say, as JSON Schema 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Matrix.model_json_schema(),
    }


def schema_text() -> str:
    """The committed file's whole text."""
    return json.dumps(matrix_schema(), indent=2, ensure_ascii=False) + "\n"


def allowed_keys(location: Location) -> tuple[str, ...]:
    """The keys a mapping at the model's location may have; empty when any key may stand there."""
    return tuple(_at(location).get("properties", ()))


def variants(location: Location) -> tuple[str, ...]:
    """The kinds a union at the model's location knows."""
    return tuple(_at(location).get("discriminator", {}).get("mapping", ()))


def _at(location: Location) -> Schema:
    schema = matrix_schema()
    for part in location:
        schema = _below(_resolved(schema), part)
    return _resolved(schema)


def _resolved(schema: Schema) -> Schema:
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if options:
        schema = options[0]
    reference = schema.get("$ref")
    definitions: dict[str, Schema] = matrix_schema()["$defs"]
    return definitions[reference.rsplit("/", 1)[-1]] if reference else schema


def _below(schema: Schema, part: str | int) -> Schema:
    """One step down: into a list, the variant of a union, a known key, or any key."""
    if isinstance(part, int):
        items: Schema = schema.get("items", {})
        return items
    tags = schema.get("discriminator", {}).get("mapping", {})
    if part in tags:
        return {"$ref": tags[part]}
    below = schema.get("properties", {}).get(part, schema.get("additionalProperties", {}))
    return below if isinstance(below, dict) else {}
