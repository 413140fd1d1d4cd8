"""Whether the data has the shape the model asks for, in the words of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import pydantic
from pydantic_core import ErrorDetails

from dsharness.model import Value
from dsharness.yaml_files.model_keys import allowed_keys, variants
from dsharness.yaml_files.problems import FileProblemsError, KeyPath, KeyPlace, Problem, suggestion
from dsharness.yaml_files.yaml_source import read_document


def shape_findings(
    model: type[Value], data: Mapping[str, object], places: Mapping[KeyPath, KeyPlace]
) -> list[Problem]:
    """Everything in the data that the model does not allow."""
    try:
        # JSON's strictness is the one wanted: lists become tuples, but no number becomes text
        model.model_validate_json(json.dumps(data), strict=True)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)
        return [_finding(model, detail, data, places) for detail in details if not _echo(detail)]
    # the model keeps a field for the loader, which a file may not set
    keys = allowed_keys(model, ())
    kept = [key for key in data if key not in keys]
    return [Problem(path=(key,), value=None, allowed=_unknown(key, keys)) for key in kept]


def _echo(detail: ErrorDetails) -> bool:
    """A list whose every item is wrong is counted as too short as well; the items say it all."""
    return detail["type"] == "too_short" and bool(detail["input"])


def key_path(location: tuple[int | str, ...], data: object) -> KeyPath:
    """The model's location without what is not in the file: the names of union variants."""
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


def _unknown(key: str, keys: tuple[str, ...]) -> str:
    return f"unknown key; allowed: {', '.join(keys)}.{suggestion(key, keys)}"


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
            allowed = _unknown(str(location[-1]), allowed_keys(model, location[:-1]))
        case "literal_error" | "enum":
            words = re.findall(r"'([^']*)'", str(context["expected"]))
            allowed = f"allowed: {context['expected']}.{suggestion(value or '', words)}"
        case "string_type" if isinstance(detail["input"], int | float):
            allowed = f'YAML reads this as a number or a truth value; quote it: "{value}"'
        case "string_pattern_mismatch":
            allowed = f"allowed: text that matches {context['pattern']}"
        case _:
            allowed = detail["msg"].replace("Input should", "should").replace("String", "text")
    return allowed


V = TypeVar("V", bound=Value)


def read_checked(path: Path, model: type[V], *, hint: str = "correct the file") -> V:
    """One value; FileProblemsError has file and line of each thing that is wrong."""
    document = read_document(path)
    problems: list[Problem] = [
        *document.findings,
        *shape_findings(model, document.data, document.places),
    ]
    if problems:
        raise FileProblemsError(path, problems, document.places, hint=hint)
    return model.model_validate_json(json.dumps(document.data), strict=True)
