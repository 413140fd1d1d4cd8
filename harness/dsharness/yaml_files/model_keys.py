"""Which keys a model allows where, by its JSON Schema."""

from __future__ import annotations

import functools
from typing import Any

from dsharness.model import Value

Schema = dict[str, Any]
Location = tuple[str | int, ...]


@functools.cache
def schema_of(model: type[Value]) -> Schema:
    """What a file of this model may say, as JSON Schema 2020-12."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}


def allowed_keys(model: type[Value], location: Location) -> tuple[str, ...]:
    """The keys a mapping at the model's location may have; empty when any key may stand there."""
    return tuple(_at(model, location).get("properties", ()))


def variants(model: type[Value], location: Location) -> tuple[str, ...]:
    """The kinds a union at the model's location knows."""
    return tuple(_at(model, location).get("discriminator", {}).get("mapping", ()))


def _at(model: type[Value], location: Location) -> Schema:
    whole = schema_of(model)
    schema = whole
    for part in location:
        schema = _below(_resolved(whole, schema), part)
    return _resolved(whole, schema)


def _resolved(whole: Schema, schema: Schema) -> Schema:
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if options:
        schema = options[0]
    reference = schema.get("$ref")
    definitions: dict[str, Schema] = whole.get("$defs", {})
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
