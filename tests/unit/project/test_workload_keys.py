"""The page of a workload's keys is written from the matrix's schema, so it cannot be out of date.

DSBISECT_REGEN=1 writes it, as `make schema` does.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "workload-keys.md"
HEAD = """\
# The keys of a workload

Written from `matrix.schema.json` by `make schema`; do not edit. `key = default`: meaning, and what
is allowed. [Workloads](workloads.md) says what they are for.
"""


def test_the_page_of_keys_is_current() -> None:
    schema = json.loads((ROOT / "matrix.schema.json").read_text("utf-8"))
    text = "\n".join(page(schema["$defs"]))
    if os.environ.get("DSBISECT_REGEN"):
        PAGE.write_text(text, "utf-8")
    assert PAGE.read_text("utf-8") == text


def page(definitions: Mapping[str, Any]) -> Iterator[str]:
    workloads = [
        definition["properties"]
        for definition in definitions.values()
        if "tool" in definition.get("properties", {})
        and "const" in definition["properties"]["tool"]
    ]
    common = set.intersection(*map(set, workloads)) - {"tool", "threads", "operation"}
    yield HEAD
    shared = {key: value for key, value in workloads[0].items() if key in common}
    yield from table("every workload", shared, definitions)
    shown: set[str] = set()
    for properties in workloads:
        own = {key: value for key, value in properties.items() if key not in common | {"tool"}}
        yield from table(f"`tool: {properties['tool']['const']}`", own, definitions)
        yield from parts(own, definitions, shown)


def parts(
    properties: Mapping[str, Any], definitions: Mapping[str, Any], shown: set[str]
) -> Iterator[str]:
    """A table for each key whose value has keys of its own, unless a table has them already."""
    for key, value in properties.items():
        for name in re.findall(r"#/\$defs/(\w+)", json.dumps(value)):
            inside = definitions[name].get("properties", {})
            if name in shown or not inside:
                continue
            if set(inside) <= shown:
                yield f"## `{key}:`\n\nIts keys stand above.\n"
            else:
                yield from table(f"`{key}:`", inside, definitions)
            shown.update(inside, [name])
            yield from explained(definitions[name])
            yield from parts(inside, definitions, shown)


def explained(definition: Mapping[str, Any]) -> Iterator[str]:
    _, _, text = str(definition.get("description", "")).partition("\n\n")
    if text:
        yield text.replace("``", "`") + "\n"


def table(
    title: str, properties: Mapping[str, Mapping[str, Any]], definitions: Mapping[str, Any]
) -> Iterator[str]:
    yield f"## {title[0].upper()}{title[1:]}\n"
    for key, value in properties.items():
        text = f"{default(value)}: {meaning(value, definitions)}".removesuffix(": ")
        yield f"- `{key}`{text}"
    yield ""


def default(value: Mapping[str, Any]) -> str:
    text = json.dumps(value.get("default")).strip('"')
    return "" if text in {"null", "[]"} else f" = `{text}`"


def meaning(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    words = [str(value.get("description", ""))]
    reference = str(value.get("$ref", "")) or str(value.get("items", {}).get("$ref", ""))
    choices = value.get("enum") or definitions.get(Path(reference).name, {}).get("enum")
    if choices:
        words.append(", ".join(f"`{choice}`" for choice in choices))
    return ": ".join(word for word in words if word)
