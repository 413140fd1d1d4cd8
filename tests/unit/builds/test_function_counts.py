"""What gcov says of functions, as counts."""

from __future__ import annotations

import json

import pytest

from dsbuilds.drivers.function_counts import counted
from dsharness.errors import BuildError


def report(file: str, calls: int) -> str:
    return json.dumps({
        "format_version": "2", "gcc_version": "14.2.0", "data_file": "counted.gcda",
        "current_working_directory": "/build/counting",
        "files": [{
            "file": file,
            "functions": [{
                "name": "f", "demangled_name": "f", "start_line": 3, "end_line": 9,
                "execution_count": calls, "blocks": 2, "blocks_executed": 2,
            }],
            "lines": [],
        }],
    })  # fmt: skip


def test_objects_of_one_file_are_added_up() -> None:
    text = "\n".join([report("a/one.c", 2), "", report("/build/counting/a/one.c", 3)])
    (found,) = counted(text)
    assert (found.file, found.name, found.first, found.last, found.calls) == (
        "a/one.c",
        "f",
        3,
        9,
        5,
    )


@pytest.mark.parametrize("text", ["no report", '{"files": [{"file": 1}]}', "[]"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(BuildError, match="not what gcov writes"):
        counted(text)
